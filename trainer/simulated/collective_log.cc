// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/collective_log.h"

#include <fmt/format.h>

#include <stdexcept>

namespace phalanx {

std::string to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::send:
      return "send";
    case CollectiveKind::receive:
      return "receive";
    case CollectiveKind::barrier:
      return "barrier";
  }
  throw std::logic_error("an unknown CollectiveKind");
}

std::string to_string(const Collective& collective) {
  std::string text =
      fmt::format("{} on {}: {} to {} bytes of {}", to_string(collective.kind), collective.group,
                  collective.input_bytes, collective.output_bytes, c10::toString(collective.dtype));
  if (collective.reduction) {
    text += fmt::format(", reduction {}", static_cast<int>(*collective.reduction));
  }
  if (collective.peer) text += fmt::format(", with {}", *collective.peer);
  return text;
}

void GroupRoster::add(int64_t world_rank, const CollectiveLog& log) {
  for (const auto& [name, place] : log.groups()) {
    auto& members =
        members_.try_emplace(name, static_cast<size_t>(place.size), kUnknown).first->second;
    if (static_cast<int64_t>(members.size()) != place.size) {
      throw std::logic_error(fmt::format("{} has {} ranks, but {} for rank {}", name,
                                         members.size(), place.size, world_rank));
    }
    int64_t& member = members.at(static_cast<size_t>(place.place));
    if (member != kUnknown && member != world_rank) {
      throw std::logic_error(fmt::format("ranks {} and {} are both in place {} of {}", member,
                                         world_rank, place.place, name));
    }
    member = world_rank;
  }
}

}  // namespace phalanx
