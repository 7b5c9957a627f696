// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// Two ends of a connection between processes of this host, which keeps the bounds of what is
/// written.
struct PacketPair {
  Descriptor first;
  Descriptor second;
};
PacketPair make_packet_pair();

/// Reads one packet into `packet`; never waits.
ReadResult read_packet(const Descriptor& source, std::string& packet);

/// False where nobody reads any more. Waits for room.
bool write_packet(const Descriptor& target, std::string_view packet);

/// What the process of a meeting tells its agent.
struct MeetingWord {
  /// `waits`: it has not met the others, and why; `joined`: as JoinedWord.
  enum class Kind : char { waits = 'w', joined = 'j', order = 'o', refused = 'r', lost = 'l' };

  Kind kind = Kind::order;
  std::string text;
};
std::string to_packet(const MeetingWord& word);
MeetingWord word_in(const std::string& packet);

}  // namespace phalanx
