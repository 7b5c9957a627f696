// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/meeting_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/host/local_address.h"
#include "trainer/launch/agent/agent_messages.h"
#include "trainer/launch/agent/exchange.h"
#include "trainer/launch/agent/packets.h"
#include "trainer/launch/agent/store_probe.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/stores/group_store.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/ranks/stores/tcp_store.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Word = MeetingWord;

// The store's host answers about this many agents a second, whatever their number.
constexpr int64_t kLooksPerSecond = 320;

constexpr const char* kPrefix = "agents";  // of their keys

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::unique_ptr<KeyValueStore> agents_part(c10::intrusive_ptr<c10d::Store> store) {
  return make_key_value_store(c10::make_intrusive<c10d::PrefixStore>(kPrefix, std::move(store)));
}

class MeetingProcess {
 public:
  MeetingProcess(const AgentSettings& settings, const Launched& launched, bool serves,
                 Descriptor agent)
      : settings_(settings), launched_(launched), serves_(serves), agent_(std::move(agent)) {}

  void run(std::optional<Listener> listener) {
    try {
      join(listener);
      ::prctl(PR_SET_PDEATHSIG, 0);  // it outlives its agent, to report the death
      tell_joined();
      while (!has_left_) {
        wait();
        hear_agent();
        look_for_another_server();
        exchange();
      }
      if (serves_ && !was_killed_) wait_for_others();
    } catch (const UserError& error) {
      tell({Word::Kind::refused, error.what()});
    } catch (const std::exception& error) {
      tell({Word::Kind::lost,
            fmt::format("{}lost the store of the run at {}:{}: {}{}",
                        serves_ ? "" : "the first node's launch has ended, or is cut off: ",
                        settings_.host, settings_.port, error_text(error), way_back())});
    }
  }

 private:
  void join(const std::optional<Listener>& listener) {
    show_only_errors_of_c10d();
    StorePlace place = endpoint();
    StoreServer server{.is_here = serves_};
    if (listener) {
      place.host = own_host();
      server.listen_fd = listener->socket.number();
    } else {
      require_known_host(place);
      wait_for_store(place);
    }
    exchange_ = std::make_shared<Exchange>(
        settings_, launched_, agents_part(open_tcp_store(place, server, settings_.join_timeout)),
        serves_);
  }

  // For a node that is cut off for a while: the others may go on without it.
  std::string way_back() const {
    const bool may_go_on = settings_.min_nodes < settings_.max_nodes || settings_.max_restarts > 0;
    if (serves_ || !exchange_ || !may_go_on || settings_.is_remote_node) return "";
    return "; if the others go on, the same command joins them again";
  }

  StorePlace endpoint() const {
    return {.host = settings_.host, .port = settings_.port, .setting = "the endpoint"};
  }

  // Tells the agent at once why the first node is not met, and tries for as long as it may.
  void wait_for_store(const StorePlace& place) {
    constexpr std::chrono::milliseconds kPatience(5'000);  // of a first node that is busy
    constexpr int kInterval = 200;                         // milliseconds
    const auto end = std::chrono::steady_clock::now() + settings_.join_timeout;
    for (;;) {
      const std::string why =
          why_no_store_answers(place, std::min(kPatience, settings_.join_timeout));
      if (why.empty()) return;
      if (std::chrono::steady_clock::now() >= end) {
        throw UserError(fmt::format(
            "found no store of the run at {}:{} in {} s (join_timeout of --rdzv-conf): {}. Is the "
            "first node started, and is the endpoint right?",
            settings_.host, settings_.port, seconds(settings_.join_timeout), why));
      }
      tell_waiting(why);
      ::poll(nullptr, 0, kInterval);
    }
  }

  // Once: an agent that is told again and again has no quiet moment to say it.
  void tell_waiting(const std::string& why) {
    if (why == told_waiting_) return;
    tell({Word::Kind::waits, why});
    told_waiting_ = why;
  }

  void tell_joined() {
    tell({Word::Kind::joined,
          to_text(JoinedWord{.number = exchange_->number(), .facts = exchange_->facts()})});
  }

  // The others look for the first node at the endpoint. Where that is not this host, another node
  // may serve there, and be the first one as well: this one joins it, and is told so.
  void look_for_another_server() {
    constexpr std::chrono::seconds kInterval(2);
    const auto now = std::chrono::steady_clock::now();
    if (!serves_ || settings_.max_nodes == 1 || members_ > 0 || now < next_look_) return;
    next_look_ = now + kInterval;
    if (!is_elsewhere_) is_elsewhere_ = !is_this_host(settings_.host);
    if (!*is_elsewhere_) return;
    const StorePlace place = endpoint();
    if (const std::string why = why_nobody_listens(place); !why.empty()) {
      return tell_waiting(
          fmt::format("{} is not this host, and the other nodes look for the first one there: {}",
                      settings_.host, why));
    }
    using Job = std::optional<std::string>;
    const std::function<Job()> find = [place] {
      constexpr std::chrono::milliseconds kPatience(1'000);
      return job_in(*agents_part(open_tcp_store(place, {}, kPatience)));
    };
    try {
      const auto job = call_within<Job>(kInterval, find);
      if (!job) return;  // it is slow: another look follows
      if (!*job || **job == exchange_->facts().job) {
        is_elsewhere_ = false;  // a way to this node, or none that this one could know
        return;
      }
    } catch (const std::exception&) {
      return;
    }
    serves_ = false;
    exchange_ = std::make_shared<Exchange>(
        settings_, launched_, agents_part(open_tcp_store(place, {}, settings_.join_timeout)),
        false);
    tell_joined();
  }

  // It listens there, whatever the endpoint's name means on this host.
  std::string own_host() const {
    if (!settings_.local_address.empty()) return settings_.local_address;
    return settings_.max_nodes == 1 ? settings_.host : kLoopbackAddress;
  }

  // A word of the agent ends it early.
  void wait() {
    pollfd word{agent_.number(), POLLIN, 0};
    ::poll(&word, 1, static_cast<int>(interval().count()));
  }

  std::chrono::milliseconds interval() const {
    const std::chrono::milliseconds fair(1000 * members_ / kLooksPerSecond);
    const auto longest = settings_.keep_alive_timeout / 3;
    return std::min(std::max(settings_.monitor_interval, fair), longest);
  }

  void hear_agent() {
    std::string packet;
    for (;;) {
      const ReadResult result = read_packet(agent_, packet);
      if (result == ReadResult::nothing_yet) return;
      if (result == ReadResult::end) {
        was_killed_ = status_.state != State::left;
        status_.state = State::left;
        has_left_ = true;
        return;
      }
      status_ = status_in(packet);
      is_introduced_ = true;
    }
  }

  void exchange() {
    if (!is_introduced_) return;
    status_.beat += 1;
    const RoundProgress progress =
        status_.state == State::running ? launched_.progress() : RoundProgress{};
    status_.has_stepped = progress.has_stepped;
    status_.samples_a_step = progress.samples_a_step;
    const auto order = call_within<std::string>(
        settings_.keep_alive_timeout,
        [exchange = exchange_, status = to_text(status_)] { return exchange->swap(status); });
    if (!order) {
      throw std::runtime_error(fmt::format(
          "it has not answered for {} s{}",
          std::chrono::duration<double>(settings_.keep_alive_timeout).count(), kLongerSilence));
    }
    if (*order == order_ || order->empty()) return;
    order_ = *order;
    const Order news = order_in(order_);
    members_ = std::max<int64_t>(members_, std::ssize(news.members));
    const auto refusal = news.refused.find(exchange_->number());
    if (refusal != news.refused.end()) throw UserError(refusal->second);
    tell({Word::Kind::order, order_});
  }

  // They learn the end of the run from this store.
  void wait_for_others() {
    const auto end = std::chrono::steady_clock::now() + settings_.keep_alive_timeout;
    while (!exchange_->is_alone() && std::chrono::steady_clock::now() < end) {
      ::poll(nullptr, 0, static_cast<int>(interval().count()));
      exchange();
    }
  }

  void tell(const Word& word) { write_packet(agent_, to_packet(word)); }

  const AgentSettings& settings_;
  const Launched& launched_;
  bool serves_;
  Descriptor agent_;
  std::shared_ptr<Exchange> exchange_;
  AgentStatus status_;
  bool is_introduced_ = false;
  bool has_left_ = false;
  bool was_killed_ = false;  ///< The agent, which says when it leaves.
  std::string order_;
  std::string told_waiting_;
  int64_t members_ = 0;               ///< The most that a round had.
  std::optional<bool> is_elsewhere_;  ///< The endpoint, where it is known.
  std::chrono::steady_clock::time_point next_look_;
};

// The agent decides what a signal means. The terminal's go to all of its processes.
void leave_signals_to_agent() {
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGQUIT}) {
    std::signal(signal, SIG_IGN);
  }
}

}  // namespace

void run_meeting(const AgentSettings& settings, const Launched& launched,
                 std::optional<Listener> listener, Descriptor agent) {
  leave_signals_to_agent();
  MeetingProcess process(settings, launched, listener.has_value(), std::move(agent));
  process.run(std::move(listener));
  // Threads that wait for a store which is gone must not hold this process.
  ::_exit(0);
}

}  // namespace phalanx
