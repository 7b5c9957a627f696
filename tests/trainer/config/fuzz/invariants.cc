// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/config/fuzz/invariants.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "tests/trainer/config/fuzz/subject.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/syntax/source_text.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/text/minimal.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config::fuzz {

namespace {

using Json = nlohmann::json;

std::ptrdiff_t lines_in(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

/// A line of a source, from 1; none: the source has fewer.
std::optional<std::string_view> line_of(std::string_view text, int number) {
  for (; number > 1; --number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::ptrdiff_t characters_in(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

const ResolveOptions& options() {
  static const ResolveOptions result{.filled_later = {},
                                     .known = {{"ml.exp_name", "an ${a} name"}}};
  return result;
}

void require_place(const Origin& origin) {
  require(origin.source != nullptr, "a mistake has no place");
  if (origin.line == 0) return;
  const auto line = line_of(origin.source->text, origin.line);
  require(line.has_value(), "a mistake is on a line that its source does not have");
  require(origin.column >= 1 && origin.column <= characters_in(*line) + 1,
          "a mistake is in a column that its line does not have");
}

void require_clear(const Diagnostic& diagnostic) {
  require(!diagnostic.message.empty(), "a mistake has no message");
  // A value that nobody wrote has no place where only an override within its section is known.
  const bool is_missing = diagnostic.message.starts_with("a mandatory value is missing");
  if (diagnostic.origin.source != nullptr || !is_missing) require_place(diagnostic.origin);
  const std::string text = to_string(diagnostic);
  require(!find_text_defect(text), "a mistake's text holds bytes that a terminal obeys");
  // The mistake itself, the line that it is in, and the caret.
  require(lines_in(text) == (diagnostic.origin.line > 0 ? 3 : 1),
          "a mistake is told in another number of lines");
}

/// Reads what print wrote, which must be without mistakes.
Node reread(const std::string& printed) {
  Diagnostics diagnostics;
  try {
    Node tree = parse_yaml(printed, "printed.yaml", diagnostics);
    diagnostics.throw_if_any();
    return tree;
  } catch (const UserError& error) {
    throw phalanx::fuzzing::Violation("what was printed is refused: " + std::string(error.what()));
  }
}

/// Resolves what was printed of a resolved config, which must come to that config again.
void require_resolves_to(const Node& resolved, const std::string& printed) {
  Diagnostics diagnostics;
  const Node again = resolve(subject(), reread(printed), diagnostics, options());
  require(diagnostics.empty(),
          "a resolved config is refused once it is printed: " + diagnostics.text());
  require(same_value(again, resolved), "a resolved config changes when it is printed and read");
}

bool is_scalar_of(const Json& json, const Node& node) {
  switch (core_type(node)) {
    case ScalarType::boolean:
      return json.is_boolean() && json.get<bool>() == (node.text == "true");
    case ScalarType::integer:
      return json.is_number_integer() && json.get<std::int64_t>() == parse_integer(node.text).value;
    case ScalarType::real:
      return json.is_number_float() ? json.get<double>() == parse_real(node.text).value
                                    : json.is_string();
    default:
      return json.is_string() && json.get_ref<const std::string&>() == node.text;
  }
}

bool is_json_of(const Json& json, const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return json.is_null();
    case Node::Kind::scalar:
      return is_scalar_of(json, node);
    case Node::Kind::list:
      return json.is_array() &&
             std::equal(json.begin(), json.end(), node.items.begin(), node.items.end(), is_json_of);
    case Node::Kind::map:
      break;
  }
  return json.is_object() && json.size() == node.entries.size() &&
         std::all_of(node.entries.begin(), node.entries.end(), [&](const Entry& entry) {
           const auto found = json.find(entry.key);
           return found != json.end() && is_json_of(*found, entry.value);
         });
}

void require_json(const Node& node) {
  const std::string text = to_json(node);
  require(lines_in(text) == 0, "JSON is more than one line");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  require(!json.is_discarded() && is_json_of(json, node), "this is not the JSON of its tree");
}

void require_each_key_once(const Node& node) {
  std::set<std::string_view> keys;
  for (const Entry& entry : node.entries) {
    require(keys.insert(entry.key).second, "a map holds a key twice");
    require_each_key_once(entry.value);
  }
  for (const Node& item : node.items) require_each_key_once(item);
}

}  // namespace

void require_clear(const Diagnostics& diagnostics) {
  require(diagnostics.all().size() <= kMaxMistakes, "there are more mistakes than are kept");
  for (const Diagnostic& diagnostic : diagnostics.all()) require_clear(diagnostic);
  for (const Diagnostic& warning : diagnostics.warnings()) require_clear(warning);
  for (const std::size_t width : {0, 40}) {
    const std::string text = diagnostics.text(width);
    require(text.empty() == diagnostics.empty(), "there is text without a mistake, or no text");
    require(!find_text_defect(text), "the text of the mistakes holds bytes that a terminal obeys");
  }
}

void require_sound_tree(const Node& tree) {
  require_each_key_once(tree);
  if (!tree.is_map() || tree.entries.empty()) return;
  const Node again = reread(print(tree, {.escape_interpolation = false}));
  require(same_value(again, tree), "a tree changes when it is printed and read");
}

void require_resolves_or_explains(const Node& tree, Diagnostics& diagnostics) {
  const Node resolved = resolve(subject(), tree, diagnostics, options());
  require_clear(diagnostics);
  if (!diagnostics.empty()) return;
  const std::string printed = print(resolved);
  const std::string explained = print(resolved, {.with_origins = true, .mark_defaults = true});
  require(same_value(reread(printed), reread(explained)),
          "a config with its origins reads as another one");
  require_resolves_to(resolved, printed);
  require_resolves_to(resolved, print(minimal(subject(), resolved)));
  require_json(resolved);
  require(differences(resolved, resolved).empty(), "a config differs from itself");
  require_readable(resolved);
}

}  // namespace phalanx::config::fuzz
