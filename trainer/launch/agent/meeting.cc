// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/meeting.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/launch/agent/endpoint.h"
#include "trainer/launch/agent/meeting_process.h"
#include "trainer/launch/agent/packets.h"
#include "trainer/launch/rank_child.h"

namespace phalanx {
Meeting::Meeting(AgentSettings& settings, const Launched& launched) {
  std::optional<Listener> listener = listen_as_server(settings);
  serves_ = listener.has_value();
  if (listener) settings.port = listener->port;
  PacketPair pair = make_packet_pair();
  const pid_t launcher = ::getpid();
  flush_streams();
  process_ = ::fork();
  if (process_ == 0) {
    pair.first.close();
    die_with_launcher(launcher);
    run_meeting(settings, launched, std::move(listener), std::move(pair.second));
  }
  if (process_ < 0) throw_system_error("start the process that meets other agents");
  socket_ = std::move(pair.first);
}

Meeting::~Meeting() {
  socket_.close();
  if (process_ == 0) return;
  if (number_ < 0) ::kill(process_, SIGKILL);  // it may still wait for the store
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

std::vector<Order> Meeting::take() {
  std::vector<Order> orders;
  std::string packet;
  for (;;) {
    const ReadResult result = read_packet(socket_, packet);
    if (result == ReadResult::nothing_yet) return orders;
    if (result == ReadResult::end) throw_died();
    const MeetingWord word = word_in(packet);
    switch (word.kind) {
      case MeetingWord::Kind::waits:
        why_waiting_ = word.text;
        break;
      case MeetingWord::Kind::joined: {
        JoinedWord joined = joined_word_in(word.text);
        number_ = joined.number;
        facts_ = std::move(joined.facts);
        why_waiting_.clear();
        break;
      }
      case MeetingWord::Kind::order:
        orders.push_back(order_in(word.text));
        break;
      case MeetingWord::Kind::refused:
        throw UserError(word.text);
      case MeetingWord::Kind::lost:
        throw LostMeeting(word.text);
    }
  }
}

void Meeting::tell(const AgentStatus& status) {
  if (write_packet(socket_, to_text(status))) return;
  take();  // Why it has ended: its last word has perhaps not been read yet.
  throw_died();
}

// It says why it ends wherever it can.
void Meeting::throw_died() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const std::string how =
      signal == 0 ? "ended and gave no reason"
                  : fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
  throw LostMeeting(fmt::format(
      "this launch is cut off: its process that {} {}{}",
      serves_ ? "serves the ranks' store and meets the other nodes" : "meets the other nodes", how,
      signal == SIGKILL ? "; if nobody sent it, the kernel's out-of-memory killer did: see dmesg"
                        : ""));
}

}  // namespace phalanx
