// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/packets.h"

#include <sys/socket.h>

#include <cerrno>

namespace phalanx {
namespace {

// An order of thousands of nodes.
constexpr size_t kLongestPacket = 1 << 20;
constexpr int kBuffer = 4 << 20;

}  // namespace

PacketPair make_packet_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_system_error("connect two processes");
  }
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
  return {take_descriptor(ends[0], "connect two processes"),
          take_descriptor(ends[1], "connect two processes")};
}

ReadResult read_packet(const Descriptor& source, std::string& packet) {
  packet.resize(kLongestPacket);
  const auto receive = [&] {
    return ::recv(source.number(), packet.data(), packet.size(), MSG_DONTWAIT);
  };
  ssize_t size = receive();
  // A peer that has ended without reading all that it was sent: once this error comes before what
  // it has written.
  if (size < 0 && errno == ECONNRESET) size = receive();
  packet.resize(size > 0 ? static_cast<size_t>(size) : 0);
  if (size > 0) return ReadResult::some;
  const bool is_empty = size < 0 && (errno == EAGAIN || errno == EINTR);
  return is_empty ? ReadResult::nothing_yet : ReadResult::end;
}

bool write_packet(const Descriptor& target, std::string_view packet) {
  for (;;) {
    if (::send(target.number(), packet.data(), packet.size(), MSG_NOSIGNAL) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

std::string to_packet(const MeetingWord& word) { return static_cast<char>(word.kind) + word.text; }

MeetingWord word_in(const std::string& packet) {
  return {.kind = static_cast<MeetingWord::Kind>(packet.at(0)), .text = packet.substr(1)};
}

}  // namespace phalanx
