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

/// Reads a line. Throws UserError with what the line is ("is no JSON: ...").
JsonLine read_json_line(const std::string& line);

}  // namespace phalanx
