// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/text_template.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/data/text/json_line.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view what) {
  throw UserError(fmt::format("the template '{}' {}", text, what));
}

std::string text_in(const nlohmann::json& object, const std::string& field) {
  const auto found = object.find(field);
  if (found == object.end()) {
    std::string others;
    for (const auto& [name, value] : object.items()) {
      others += fmt::format("{}'{}'", others.empty() ? "" : ", ", name);
    }
    throw UserError(fmt::format("has no field '{}': its fields are {}", field,
                                others.empty() ? "none" : others));
  }
  if (found->is_number()) return found->dump();
  if (!found->is_string()) throw UserError(no_text_in(field, *found));
  return found->get<std::string>();
}

}  // namespace

TextTemplate::TextTemplate(std::string_view text) {
  std::string literal;
  for (size_t place = 0; place < text.size(); ++place) {
    const char c = text[place];
    const bool is_brace = c == '{' || c == '}';
    if (is_brace && text.substr(place + 1).starts_with(c)) {
      ++place;
    } else if (c == '}') {
      refuse(text, "has a '}' without its '{': write '}}' for one that is text");
    } else if (c == '{') {
      const size_t end = text.find_first_of("{}", place + 1);
      if (end == std::string_view::npos || text[end] == '{') {
        refuse(text, "has a '{' without its '}': write '{{' for one that is text");
      }
      if (end == place + 1) refuse(text, "has a place without a name: write '{{}}' for text");
      parts_.push_back({.text = std::exchange(literal, {})});
      parts_.push_back(
          {.text = std::string(text.substr(place + 1, end - place - 1)), .is_field = true});
      place = end;
      continue;
    }
    literal += c;
  }
  parts_.push_back({.text = std::move(literal)});
  if (parts_.size() == 1) refuse(text, "names no field: write '{document}' where one goes");
}

std::string TextTemplate::fill(const nlohmann::json& object) const {
  std::string filled;
  for (const Part& part : parts_) filled += part.is_field ? text_in(object, part.text) : part.text;
  return filled;
}

}  // namespace phalanx
