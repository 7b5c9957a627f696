// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/json_vocabulary.h"

#include <fmt/format.h>

#include <stdexcept>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"

namespace phalanx {

using nlohmann::json;

int32_t token_number(const json& value) {
  constexpr auto kLargest = static_cast<uint64_t>(Vocabulary::kLargest);
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kLargest) return value.get<int32_t>();
  throw std::invalid_argument(
      fmt::format("{} is no number of a token: [0, {}]", value.dump(), Vocabulary::kLargest));
}

std::size_t count_in(const json& value) {
  const bool is_count =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  if (is_count) return value.get<std::size_t>();
  throw std::invalid_argument(fmt::format("{} is no count: a whole number >= 0", value.dump()));
}

std::vector<Vocabulary::Entry> read_vocabulary(const json& object) {
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(object.size());
  for (const auto& [text, token] : object.items()) {
    entries.push_back({.token = token_number(token), .text = text});
  }
  return entries;
}

json parse_json_object(std::string_view text) {
  try {
    json file = json::parse(text);
    if (file.is_object()) return file;
  } catch (const json::exception& e) {
    throw UserError(fmt::format("it is no JSON: {}", json_cause(e)));
  }
  throw UserError("it holds no JSON object");
}

}  // namespace phalanx
