#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config/merge.h"
#include "trainer/config/override_value.h"
#include "trainer/config/parse.h"
#include "trainer/config/source_text.h"

namespace phalanx::config {

namespace {

using SourcePointer = std::shared_ptr<const Source>;

constexpr const char* kExample = "; write key=value, such as optimizer.lr=0.1";
constexpr const char* kWrongInKey =
    "this cannot be in a key; write key=value with a dotted key, such as optimizer.lr=0.1";

/// What an override does to its key.
enum class Action {
  set,     ///< key=value
  add,     ///< +key=value: only where nothing is written yet
  force,   ///< ++key=value
  remove,  ///< ~key, ~key=value: back to the default
};

/// One part of a key: a name, or the number of an element of the list that the name before it
/// holds.
struct Step {
  std::string name;
  std::optional<std::size_t> index;
  std::size_t position = 0;  ///< Byte in the argument.
};

/// An override, read but not applied.
struct Override {
  Action action = Action::set;
  std::vector<Step> steps;
  std::optional<std::size_t> value;  ///< Where it begins; none behind a `~key`.
};

using Defect = std::optional<TextDefect>;

Defect check_text(std::string_view text) {
  if (Defect defect = find_text_defect(text)) return defect;
  const std::size_t control = text.find_first_of("\n\t");
  if (control == std::string_view::npos) return std::nullopt;
  return TextDefect{control, "an override is one line without tabs; put such a text into a file"};
}

bool is_key_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

/// Reads `+a.b[2].c=` up to where the value begins.
class KeyParser {
 public:
  explicit KeyParser(std::string_view text) : text_(text) {}

  Override parse() {
    Override parsed;
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
      if (parsed.action == Action::remove) return parsed;
      throw TextDefect{0, std::string("this is no override") + kExample};
    }
    if (text_[position_] != '=') {
      throw TextDefect{position_, kWrongInKey};
    }
    parsed.value = position_ + 1;
    return parsed;
  }

 private:
  Action parse_action() {
    for (const auto& [mark, action] : {std::pair{"++", Action::force}, std::pair{"+", Action::add},
                                       std::pair{"~", Action::remove}}) {
      if (!text_.starts_with(mark)) continue;
      position_ = std::string_view(mark).size();
      return action;
    }
    return Action::set;
  }

  bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }

  void parse_part(std::vector<Step>& steps) {
    parse_name(steps);
    while (at('[')) parse_index(steps);
  }

  void parse_name(std::vector<Step>& steps) {
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
    throw TextDefect{position_, kWrongInKey};
  }

  void parse_index(std::vector<Step>& steps) {
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

std::string path_of(const std::vector<Step>& steps, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count; ++i) {
    path += steps[i].index ? "[" + std::to_string(*steps[i].index) + "]"
            : path.empty() ? steps[i].name
                           : "." + steps[i].name;
  }
  return path;
}

/// The element that a step names. Throws TextDefect where there is none.
Node& element_at(Node* list, const std::vector<Step>& steps, std::size_t number) {
  const std::string path = path_of(steps, number);
  const std::size_t position = steps[number].position;
  if (list == nullptr || list->is_null()) {
    throw TextDefect{position, "'" + path +
                                   "' is not written in the config, so it has no element to "
                                   "set; set the whole list: " +
                                   path + "=[...]"};
  }
  if (!list->is_list()) throw TextDefect{position, "'" + path + "' is no list here"};
  if (*steps[number].index >= list->items.size()) {
    throw TextDefect{position, "'" + path + "' has " + std::to_string(list->items.size()) +
                                   " elements, numbered from 0"};
  }
  return list->items[*steps[number].index];
}

/// What stands at the first `count` steps, or nullptr. Throws TextDefect where a list is entered by
/// a name, or an element is not there.
Node* find_steps(Node& tree, const std::vector<Step>& steps, std::size_t count) {
  Node* node = &tree;
  for (std::size_t i = 0; i < count; ++i) {
    if (steps[i].index) {
      node = &element_at(node, steps, i);
    } else if (node != nullptr) {
      if (node->is_list()) {
        throw TextDefect{0, "'" + path_of(steps, i) +
                                "' is a list here; set it as a whole, or an "
                                "element: " +
                                path_of(steps, i) + "[0]=..."};
      }
      node = node->find(steps[i].name);
    }
  }
  return node;
}

void set_value(Node& tree, const std::vector<Step>& steps, Node value, const Origin& key_origin) {
  // The names behind the last element, which `assign` merges into it.
  std::size_t names = steps.size();
  while (names > 0 && !steps[names - 1].index) --names;
  find_steps(tree, steps, steps.size());  // refuses what cannot be entered
  Node* root = find_steps(tree, steps, names);
  std::string path;
  for (std::size_t i = names; i < steps.size(); ++i) path = join_path(path, steps[i].name);
  if (path.empty()) {
    merge(*root, std::move(value));
  } else {
    assign(*root, path, std::move(value), key_origin);
  }
}

void refuse_if_written(Node& tree, const Override& parsed, const Node& value) {
  const Node* there = find_steps(tree, parsed.steps, parsed.steps.size());
  if (there == nullptr || there->is_missing() || there->is_null()) return;
  if (there->is_map() && value.is_map()) return;  // adds to it
  const std::string path = path_of(parsed.steps, parsed.steps.size());
  throw TextDefect{0, "'" + path + "' is set already (" + there->origin.text() +
                          "), and + only adds; write " + path + "=... or ++" + path + "=..."};
}

void remove_value(Node& tree, const Override& parsed, const std::optional<Node>& expected) {
  const std::vector<Step>& steps = parsed.steps;
  const std::string path = path_of(steps, steps.size());
  if (steps.back().index) {
    throw TextDefect{0, "an element cannot be taken out of a list; set the whole list"};
  }
  Node* section = find_steps(tree, steps, steps.size() - 1);
  const Node* there = find_steps(tree, steps, steps.size());
  if (section == nullptr || there == nullptr) {
    throw TextDefect{0, "'" + path +
                            "' is not set by a file or an earlier override: there is nothing "
                            "to remove"};
  }
  if (expected && !same_value(*there, *expected)) {
    throw TextDefect{*parsed.value, "'" + path + "' has another value here (" +
                                        there->origin.text() + "), so it stays; ~" + path +
                                        " removes it whatever it is"};
  }
  std::erase_if(section->entries,
                [&](const Entry& entry) { return entry.key == steps.back().name; });
}

void apply(Node& tree, const SourcePointer& source, Diagnostics& diagnostics) {
  const Override parsed = KeyParser(source->text).parse();
  std::optional<Node> value;
  if (parsed.value) {
    value = parse_override_value(source, *parsed.value, diagnostics);
    if (!value) return;
  }
  if (parsed.action == Action::remove) return remove_value(tree, parsed, value);
  if (parsed.action == Action::add) refuse_if_written(tree, parsed, *value);
  set_value(tree, parsed.steps, std::move(*value),
            origin_at(source, parsed.steps.front().position));
}

}  // namespace

void apply_override(Node& tree, std::string argument, Diagnostics& diagnostics) {
  const auto source = std::make_shared<const Source>(
      Source{Source::Kind::command_line, "command line", std::move(argument)});
  const auto report = [&](std::size_t position, std::string message) {
    diagnostics.add(origin_at(source, position), "", std::move(message));
  };
  if (source->text.size() > kMaxConfigBytes) return report(0, "the argument is larger than 1 MiB");
  if (const Defect defect = check_text(source->text)) {
    return report(defect->position, defect->message);
  }
  try {
    apply(tree, source, diagnostics);
  } catch (const TextDefect& defect) {
    report(defect.position, defect.message);
  }
}

bool is_forced(std::string_view argument, std::string_view path) {
  if (!argument.starts_with("++")) return false;
  argument.remove_prefix(2);
  std::string_view key = argument.substr(0, argument.find_first_of("=["));
  const bool is_map = argument.find("={") == key.size();  // its fields are to be named one by one
  if (path == key) return true;
  // Another class brings other fields.
  if (key.ends_with(".name")) key.remove_suffix(std::string_view(".name").size());
  return !is_map && path.starts_with(key) && path.size() > key.size() && path[key.size()] == '.';
}

}  // namespace phalanx::config
