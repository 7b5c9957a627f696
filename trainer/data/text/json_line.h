// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace phalanx {

/// The JSON object of a line of JSONL.
struct JsonLine {
  nlohmann::json object;
  /// The line holds what is no UTF-8, or half of a surrogate pair: both are read as U+FFFD.
  bool has_broken_characters = false;
};

/// What is wrong with a field that holds no text, to stand behind "the line": "has no text in the
/// field 'label', but a number". Of a list of messages, also what to write in its place.
std::string no_text_in(const std::string& field, const nlohmann::json& value);

/// Reads a line. Throws UserError with what the line is ("is no JSON: ...").
JsonLine read_json_line(const std::string& line);

}  // namespace phalanx
