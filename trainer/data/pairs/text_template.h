// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// A text with places for the fields of a JSON object: "summarize: {document}". Two braces stand
/// for one that is text.
class TextTemplate {
 public:
  /// Throws UserError, with what is wrong, for a brace without its other, and for a text without a
  /// field: it would be the same in each sample.
  explicit TextTemplate(std::string_view text);

  /// The text with the fields of an object, numbers as JSON writes them. Throws UserError that goes
  /// on behind "the line": "has no field 'document'".
  std::string fill(const nlohmann::json& object) const;

 private:
  struct Part {
    std::string text;
    bool is_field = false;
  };

  std::vector<Part> parts_;
};

}  // namespace phalanx
