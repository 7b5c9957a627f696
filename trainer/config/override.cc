#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/config/document.h"
#include "trainer/config/parse.h"
#include "trainer/config/source_text.h"

namespace phalanx::config {

namespace {

using SourcePointer = std::shared_ptr<const Source>;

/// What is wrong with an argument, and the byte where.
using Defect = std::optional<TextDefect>;

Defect check_text(std::string_view text) {
  if (Defect defect = find_text_defect(text)) return defect;
  const std::size_t control = text.find_first_of("\n\t");
  if (control == std::string_view::npos) return std::nullopt;
  return TextDefect{control, "an override is one line without tabs"};
}

Defect check_key(std::string_view key) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  if (key.empty()) return TextDefect{0, "the key is missing; write key=value"};
  if (key[0] == '+' || key[0] == '~') {
    return TextDefect{0, "only key=value is read; keys are neither added nor removed"};
  }
  if (const std::size_t bracket = key.find('['); bracket != std::string_view::npos) {
    return TextDefect{bracket, "an element of a list cannot be set; set the whole list"};
  }
  const auto wrong = std::find_if_not(key.begin(), key.end(), allowed);
  if (wrong != key.end()) {
    return TextDefect{static_cast<std::size_t>(wrong - key.begin()),
                      "this cannot be in a key; write key=value with a dotted key, such as "
                      "optimizer.lr=0.1"};
  }
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool edge = i == 0 || i + 1 == key.size() || key[i + 1] == '.';
    if (key[i] == '.' && edge) return TextDefect{i, "a part of the dotted key is missing"};
  }
  if (std::count(key.begin(), key.end(), '.') >= kMaxDepth) {
    return TextDefect{0, "the key has too many parts"};
  }
  return std::nullopt;
}

/// The list that a dotted path leads through, as the number of bytes of the path before it ends.
std::optional<std::size_t> list_within(const Node& tree, std::string_view key) {
  for (std::size_t dot = key.find('.'); dot != std::string_view::npos;
       dot = key.find('.', dot + 1)) {
    const Node* node = tree.find_path(key.substr(0, dot));
    if (node == nullptr) return std::nullopt;
    if (node->is_list()) return dot;
  }
  return std::nullopt;
}

/// Text that is neither quoted, nor a list or map: as it stands, so that it needs no quotes of
/// YAML's within those of a shell.
Node plain_value(std::string_view text) {
  if (text.empty()) return Node::string("");
  if (text == "null" || text == "Null" || text == "NULL" || text == "~") return Node::null();
  return Node::plain(std::string(text));
}

std::optional<Node> parse_value(const SourcePointer& source, std::size_t start,
                                Diagnostics& diagnostics) {
  const std::string& argument = source->text;
  const std::size_t first = argument.find_first_not_of(' ', start);
  const Origin origin = origin_at(source, first == std::string::npos ? start : first);
  const char lead = first == std::string::npos ? ' ' : argument[first];
  const bool quoted = lead == '"' || lead == '\'';
  std::optional<Node> value;
  if (quoted || lead == '[' || lead == '{') {
    value = parse_document(source, std::string(start, ' ') + argument.substr(start), diagnostics);
    if (value && quoted && !value->is_scalar()) {
      diagnostics.add(origin, "", "the quoted value has ended, but more follows");
      value.reset();
    }
  } else if (first == std::string::npos) {
    value = plain_value("");
  } else {
    value = plain_value(
        std::string_view(argument).substr(first, argument.find_last_not_of(' ') + 1 - first));
  }
  if (value) value->origin = origin;
  return value;
}

}  // namespace

void apply_override(Node& tree, std::string argument, Diagnostics& diagnostics) {
  const auto source = std::make_shared<const Source>(
      Source{Source::Kind::command_line, "command line", std::move(argument)});
  const std::string& text = source->text;
  const auto report = [&](const TextDefect& defect, std::string path) {
    diagnostics.add(origin_at(source, defect.position), std::move(path), defect.message);
  };
  if (text.size() > kMaxConfigBytes) return report({0, "the argument is larger than 1 MiB"}, "");
  if (const Defect defect = check_text(text)) return report(*defect, "");
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return report({0, "this is no override; write key=value, such as optimizer.lr=0.1"}, "");
  }
  const std::string key = text.substr(0, equals);
  if (const Defect defect = check_key(key)) return report(*defect, "");
  if (const std::optional<std::size_t> end = list_within(tree, key)) {
    return report({0, "'" + key.substr(0, *end) + "' is a list here; set it as a whole"}, key);
  }
  std::optional<Node> value = parse_value(source, equals + 1, diagnostics);
  if (value) assign(tree, key, std::move(*value), origin_at(source, 0));
}

}  // namespace phalanx::config
