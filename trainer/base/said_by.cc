// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/said_by.h"

#include <algorithm>

namespace phalanx {
namespace {

// "rank 0: no data"
bool has_speaker(std::string_view message) {
  constexpr std::string_view kRank = "rank ";
  if (!message.starts_with(kRank)) return false;
  message.remove_prefix(kRank.size());
  const size_t digits = std::min(message.find_first_not_of("0123456789"), message.size());
  return digits > 0 && message.substr(digits).starts_with(": ");
}

}  // namespace

std::string said_by(int64_t rank, std::string_view message) {
  const std::string name = "rank " + std::to_string(rank);
  if (has_speaker(message) || message.starts_with(name + " ")) return std::string(message);
  return name + ": " + std::string(message);
}

}  // namespace phalanx
