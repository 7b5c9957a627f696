// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/json_cause.h"

#include <string_view>

namespace phalanx {

std::string json_cause(const std::exception& error) {
  constexpr std::string_view kPrefix = "[json.exception.";
  constexpr std::string_view kEnd = "] ";
  constexpr std::string_view kPlace = "parse error at ";
  std::string_view text = error.what();
  if (!text.starts_with(kPrefix)) return std::string(text);
  text.remove_prefix(text.find(kEnd) + kEnd.size());
  if (text.starts_with(kPlace)) text.remove_prefix(kPlace.size());
  return std::string(text);
}

}  // namespace phalanx
