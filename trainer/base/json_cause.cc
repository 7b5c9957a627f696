// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/json_cause.h"

#include <string_view>

namespace phalanx {
namespace {

// Puts "cannot use value() with number", and the like, in plain words.
std::string wrong_kind(std::string_view text) {
  constexpr std::string_view kBefore = " with ";
  const std::string kind(text.substr(text.rfind(kBefore) + kBefore.size()));
  std::string needed = "an object or a list";
  if (kind == "array" || text.find(" value() ") != text.npos) needed = "an object";
  if (kind == "object") needed = "a list";
  return "it must be " + needed + ", but is " + kind;
}

}  // namespace

std::string json_cause(const std::exception& error) {
  constexpr std::string_view kPrefix = "[json.exception.";
  constexpr std::string_view kEnd = "] ";
  constexpr std::string_view kPlace = "parse error at ";
  std::string_view text = error.what();
  if (!text.starts_with(kPrefix)) return std::string(text);
  text.remove_prefix(text.find(kEnd) + kEnd.size());
  if (text.starts_with(kPlace)) text.remove_prefix(kPlace.size());
  if (text.starts_with("cannot use ")) return wrong_kind(text);
  return std::string(text);
}

}  // namespace phalanx
