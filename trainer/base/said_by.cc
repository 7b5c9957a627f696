// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/said_by.h"

#include <algorithm>

namespace phalanx {
namespace {

// The length of "rank 0: " in "rank 0: no data"; 0: nobody is named there.
size_t length_of_speaker(std::string_view message) {
  constexpr std::string_view kRank = "rank ";
  if (!message.starts_with(kRank)) return 0;
  const std::string_view rest = message.substr(kRank.size());
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const bool has_speaker = digits > 0 && rest.substr(digits).starts_with(": ");
  return has_speaker ? kRank.size() + digits + 2 : 0;
}

}  // namespace

std::string said_by(int64_t rank, std::string_view message) {
  const std::string name = "rank " + std::to_string(rank);
  if (length_of_speaker(message) > 0 || message.starts_with(name + " "))
    return std::string(message);
  return name + ": " + std::string(message);
}

std::string said_in(std::string_view place, std::string_view message) {
  const size_t speaker = length_of_speaker(message);
  const std::string_view words = message.substr(speaker);
  const bool has_place =
      words.starts_with(place) && (words.substr(place.size()).starts_with(": ") ||
                                   words.substr(place.size()).starts_with(", "));
  if (has_place) return std::string(message);
  return std::string(message.substr(0, speaker)) + std::string(place) + ": " + std::string(words);
}

}  // namespace phalanx
