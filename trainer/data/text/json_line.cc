// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/json_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"
#include "trainer/base/utf8_repair.h"

namespace phalanx {
namespace {

using nlohmann::json;

// The value of JSON's \uXXXX that a text begins with.
std::optional<unsigned> escaped_unit(std::string_view text) {
  unsigned unit = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  if (error != std::errc() || end != text.data() + 6) return std::nullopt;
  return unit;
}

// With \ufffd for each escape that is half of a surrogate pair: Python's json.dumps writes such.
std::string with_whole_pairs(std::string_view line) {
  std::string result;
  while (!line.empty()) {
    const unsigned unit = escaped_unit(line).value_or(0);
    const bool is_half = unit >= 0xD800 && unit < 0xE000;
    const unsigned next = is_half ? escaped_unit(line.substr(6)).value_or(0) : 0;
    const bool is_pair = is_half && unit < 0xDC00 && next >= 0xDC00 && next < 0xE000;
    const size_t length = is_pair ? 12 : is_half ? 6 : line.front() == '\\' ? 2 : 1;
    result += is_half && !is_pair ? "\\ufffd" : line.substr(0, length);
    line.remove_prefix(std::min(length, line.size()));
  }
  return result;
}

JsonLine parse(const std::string& line) {
  json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!value.is_discarded()) return {.object = std::move(value)};
  try {
    return {.object = json::parse(with_whole_pairs(repaired_utf8(line))),
            .has_broken_characters = true};
  } catch (const json::exception& e) {
    throw UserError(fmt::format("is no JSON: {}", json_cause(e)));
  }
}

}  // namespace

std::string no_text_in(const std::string& field, const json& value) {
  const bool is_chat = value.is_array() && !value.empty() && value.front().is_object() &&
                       (value.front().contains("content") || value.front().contains("value"));
  if (!is_chat) {
    return fmt::format("has no text in the field '{}', but a value of JSON's type {}", field,
                       value.type_name());
  }
  return fmt::format(
      "has no text in the field '{}', but a list of messages, which is not read: write each turn "
      "into a field of its own, such as question and answer, and name these (pairs.input: "
      "'{{question}}', pairs.target: '{{answer}}'), or write the whole chat as one text",
      field);
}

JsonLine read_json_line(const std::string& line) {
  JsonLine read = parse(line);
  if (!read.object.is_object()) throw UserError("is no JSON object");
  return read;
}

}  // namespace phalanx
