// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/override_key.h"

#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/source_text.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

namespace {

constexpr const char* kExample = "; write key=value, such as optimizer.lr=0.1";
constexpr const char* kWrongInKey =
    "this cannot be in a key; write key=value with a dotted key, such as optimizer.lr=0.1";

bool is_key_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

class KeyParser {
 public:
  explicit KeyParser(std::string_view text) : text_(text) {}

  OverrideKey parse() {
    OverrideKey parsed;
    parsed.action = parse_action();
    parse_part(parsed.steps);
    while (at('.')) {
      ++position_;
      parse_part(parsed.steps);
    }
    if (parsed.steps.size() > static_cast<std::size_t>(kMaxDepth)) {
      throw TextDefect{0, "the key has too many parts"};
    }
    if (position_ == text_.size()) {
      if (parsed.action == OverrideAction::remove) return parsed;
      throw TextDefect{0, std::string("this is no override") + kExample};
    }
    if (!at('=')) refuse_character();
    parsed.value = position_ + 1;
    return parsed;
  }

 private:
  OverrideAction parse_action() {
    for (const auto& [mark, action] :
         {std::pair{"++", OverrideAction::force}, std::pair{"+", OverrideAction::add},
          std::pair{"~", OverrideAction::remove}}) {
      if (!text_.starts_with(mark)) continue;
      position_ = std::string_view(mark).size();
      return action;
    }
    return OverrideAction::set;
  }

  bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }

  void parse_part(std::vector<KeyStep>& steps) {
    parse_name(steps);
    while (at('[')) parse_index(steps);
  }

  void parse_name(std::vector<KeyStep>& steps) {
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_key_character(text_[position_])) ++position_;
    if (position_ == begin) refuse_name(!steps.empty());
    steps.push_back({std::string(text_.substr(begin, position_ - begin)), {}, begin});
  }

  /// There is no name where one should be: at the beginning, or after a dot.
  [[noreturn]] void refuse_name(bool after_dot) const {
    const char next = position_ < text_.size() ? text_[position_] : '\0';
    if (after_dot && (next == '\0' || next == '=' || next == '.' || next == '[')) {
      throw TextDefect{position_ - 1, "a part of the dotted key is missing"};
    }
    if (next == '\0') throw TextDefect{0, std::string("this is no override") + kExample};
    if (next == '=') throw TextDefect{position_, "the key is missing; write key=value"};
    if (next == '.') throw TextDefect{position_, "a part of the dotted key is missing"};
    refuse_character();
  }

  [[noreturn]] void refuse_character() const {
    if (at('/') || at('@')) {
      throw TextDefect{position_,
                       "there are no config groups and packages (group/option, key@package); name "
                       "a field by its dotted key, such as optimizer.name=sgd, and lay files over "
                       "each other: trainer base.yaml other.yaml"};
    }
    throw TextDefect{position_, kWrongInKey};
  }

  void parse_index(std::vector<KeyStep>& steps) {
    const std::size_t begin = position_++;
    std::size_t index = 0;
    const char* const first = text_.data() + position_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), index);
    position_ += static_cast<std::size_t>(end - first);
    if (error != std::errc() || position_ == text_.size() || text_[position_] != ']') {
      throw TextDefect{begin, "an element of a list is named by its number, from 0: key[0]=value"};
    }
    ++position_;
    steps.push_back({"", index, begin});
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

OverrideKey parse_override_key(std::string_view argument) { return KeyParser(argument).parse(); }

std::string path_of(std::span<const KeyStep> steps) {
  std::string path;
  for (const KeyStep& step : steps) {
    path = step.index ? path + "[" + std::to_string(*step.index) + "]" : join_path(path, step.name);
  }
  return path;
}

}  // namespace phalanx::config
