// SPDX-License-Identifier: Apache-2.0
// Where values come from: expect_origins.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/config/properties.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/config/syntax/compose.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"

namespace phalanx::config {

namespace {

using Keys = std::vector<std::string>;

/// A value that is no section, and the keys that lead to it.
struct Leaf {
  Keys keys;
  Node value;
};

void collect_leaves(const Node& node, Keys& keys, std::vector<Leaf>& leaves) {
  if (node.entries.empty()) {
    leaves.push_back({keys, node});
    return;
  }
  for (const Entry& entry : node.entries) {
    keys.push_back(entry.key);
    collect_leaves(entry.value, keys, leaves);
    keys.pop_back();
  }
}

std::vector<Leaf> leaves_of(const Node& tree) {
  Keys keys;
  std::vector<Leaf> leaves;
  if (!tree.entries.empty()) collect_leaves(tree, keys, leaves);
  return leaves;
}

void set_at(Node& tree, const Keys& keys, Node value) {
  Node* node = &tree;
  for (const std::string& key : keys) {
    Node* next = node->find(key);
    node = next != nullptr ? next : &node->set(key, Node::map());
  }
  *node = std::move(value);
}

const Node* find_at(const Node& tree, const Keys& keys) {
  const Node* node = &tree;
  for (const std::string& key : keys) {
    node = node == nullptr ? nullptr : node->find(key);
  }
  return node;
}

std::string dotted(const Keys& keys) {
  std::string path;
  for (const std::string& key : keys) path = join_path(path, key);
  return path;
}

std::string as_written(const Node& value) {
  return print_inline(value, {.escape_interpolation = false});
}

/// What a comment says of the keys that its line gives a value: unlike any value.
std::string mark_of(const Keys& keys) {
  std::string mark = "at";
  for (const std::string& key : keys) mark += " /" + print_inline(Node::string(key));
  return mark;
}

/// YAML with a mark behind each value, written here so that nothing is taken from the printer but
/// how one value looks.
void write_block(const Node& map, const std::string& indent, Keys& keys, std::string& text) {
  for (const Entry& entry : map.entries) {
    keys.push_back(entry.key);
    text += indent + as_written(Node::string(entry.key)) + ":";
    if (entry.value.entries.empty()) {
      text += " " + as_written(entry.value) + "  # " + mark_of(keys) + "\n";
    } else {
      text += "\n";
      write_block(entry.value, indent + "  ", keys, text);
    }
    keys.pop_back();
  }
}

/// An override that sets a leaf, where one can say it without escapes.
std::optional<std::string> as_override(const Leaf& leaf) {
  static const std::regex plain_key("[A-Za-z0-9_-]+");
  static const std::regex plain_value(R"([A-Za-z0-9_.+-]+|\[[A-Za-z0-9_.+, -]*\])");
  for (const std::string& key : leaf.keys) {
    if (!std::regex_match(key, plain_key)) return std::nullopt;
  }
  const std::string value = as_written(leaf.value);
  if (leaf.value.is_map() || !std::regex_match(value, plain_value)) return std::nullopt;
  return dotted(leaf.keys) + "=" + value;
}

/// Another value of the same kind, to be written before the one that counts.
Node other_value(const Node& value) {
  return value.is_list() ? Node::list({Node::plain("other")}) : Node::plain("other");
}

/// The layers of one config and which of them wrote what last.
class Layers {
 public:
  Layers(RandomConfig& random, const Node& written) {
    for (Node& file : trees_) file = Node::map();
    for (const Leaf& leaf : leaves_of(written)) {
      // A preset counts before what earlier layers set: here nothing is earlier.
      const bool may_be_preset = leaf.keys.back() == kPreset || leaf.keys.back() == "name";
      std::size_t last = may_be_preset ? kBase : random.below(kOverrides + 1);
      const std::optional<std::string> argument = as_override(leaf);
      if (last == kOverrides && !argument) last = kSecond;
      if (last == kOverrides) {
        overrides_.push_back(*argument);
      } else {
        set_at(trees_[last], leaf.keys, leaf.value);
      }
      last_[leaf.keys] = last;
      if (last == 0 || leaf.value.is_map() || random.chance(0.5)) continue;
      set_at(trees_[random.below(last)], leaf.keys, other_value(leaf.value));
    }
  }

  /// Writes the files, reads all layers and resolves them.
  Node resolved(const Declaration& declaration, const TemporaryFolder& folder) const {
    std::vector<std::filesystem::path> files;
    for (std::size_t i = 0; i < kOverrides; ++i) {
      std::string text = i == kMain ? "include: base.yaml\n" : "# nothing else\n{}\n";
      Keys keys;
      if (!trees_[i].entries.empty()) {
        if (i != kMain) text.clear();
        write_block(trees_[i], "", keys, text);
      }
      spill(folder / kNames[i], text);
      if (i != kBase) files.push_back(folder / kNames[i]);
    }
    Diagnostics diagnostics;
    Node tree = read_files(files, diagnostics);
    for (const std::string& argument : overrides_) apply_override(tree, argument, diagnostics);
    Node whole = resolve(declaration, std::move(tree), diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
    return whole;
  }

  void expect_place(const Leaf& leaf, const Origin& origin) const {
    ASSERT_NE(origin.source, nullptr) << dotted(leaf.keys);
    const std::string& text = origin.source->text;
    if (last_.at(leaf.keys) == kOverrides) {
      ASSERT_EQ(origin.source->kind, Source::Kind::command_line) << dotted(leaf.keys);
      EXPECT_EQ(text, *as_override(leaf));
      EXPECT_EQ(static_cast<std::size_t>(origin.column), text.find('=') + 2) << text;
      return;
    }
    EXPECT_TRUE(origin.source->name.ends_with(kNames[last_.at(leaf.keys)])) << origin.source->name;
    std::size_t start = 0;
    for (int line = 1; line < origin.line; ++line) start = text.find('\n', start) + 1;
    const std::string line = text.substr(start, text.find('\n', start) - start);
    EXPECT_TRUE(line.ends_with("  # " + mark_of(leaf.keys))) << line;
    // The key of a leaf may hold more bytes than characters; its value is all behind the column.
    std::size_t byte = 0;
    for (int column = 1; byte < line.size(); ++byte) {
      const bool begins = (static_cast<unsigned char>(line[byte]) & 0xC0) != 0x80;
      if (begins && column++ == origin.column) break;
    }
    EXPECT_TRUE(line.substr(byte).starts_with(as_written(leaf.value))) << line << "\n" << byte;
  }

  bool wrote(const Keys& keys) const { return last_.contains(keys); }

 private:
  static constexpr std::size_t kBase = 0, kMain = 1, kSecond = 2, kOverrides = 3;
  static constexpr std::array kNames = {"base.yaml", "main.yaml", "second.yaml"};

  std::array<Node, kOverrides> trees_;
  std::vector<std::string> overrides_;
  std::map<Keys, std::size_t> last_;
};

/// Which of the values that nobody wrote are a preset's, and which one's.
class PresetOrigins {
 public:
  void visit(const Declaration& declaration, const Node& written, const Keys& keys) {
    const Node* name = written.is_scalar() ? &written : written.find(kPreset);
    if (const Preset* preset = name == nullptr ? nullptr : declaration.find_preset(name->text)) {
      for (const Leaf& leaf : leaves_of(preset->values)) {
        Keys path = keys;
        path.insert(path.end(), leaf.keys.begin(), leaf.keys.end());
        origins_[path] = "preset " + preset->name;
      }
    }
    for (const Field& field : declaration.fields()) {
      const Node* inner = written.find(field.name);
      if (inner == nullptr) continue;
      Keys path = keys;
      path.push_back(field.name);
      if (field.type.choice) {
        visit_choice(*field.type.choice, *inner, path);
      } else if (field.type.kind == Type::Kind::section) {
        visit(*field.type.section, *inner, path);
      } else if (field.type.kind == Type::Kind::map && field.type.leaf().section != nullptr) {
        for (const Entry& entry : inner->entries) {
          Keys element = path;
          element.push_back(entry.key);
          visit(*field.type.leaf().section, entry.value, element);
        }
      }
    }
  }

  std::string text(const Keys& keys) const {
    const auto found = origins_.find(keys);
    return found == origins_.end() ? "default" : found->second;
  }

 private:
  void visit_choice(const Choice& choice, const Node& written, const Keys& keys) {
    for (const std::string& name : choice.names()) {
      const Declaration& candidate = *choice.find(name);
      const Node* given = written.is_scalar() ? &written : written.find("name");
      const Node* preset = written.is_scalar() ? &written : written.find(kPreset);
      const bool by_name = given != nullptr && given->text == name;
      const bool by_preset = preset != nullptr && candidate.find_preset(preset->text) != nullptr;
      const bool by_default = given == nullptr && preset == nullptr && name == choice.default_name;
      if (by_name || by_preset || by_default) return visit(candidate, written, keys);
    }
  }

  std::map<Keys, std::string> origins_;
};

/// What print writes as one: a scalar, null, an empty map, a list.
void expect_comments(const Node& resolved, const Node& printed,
                     const std::vector<std::string>& lines) {
  if (!resolved.entries.empty()) {
    for (const Entry& entry : resolved.entries) {
      expect_comments(entry.value, *printed.find(entry.key), lines);
    }
    return;
  }
  const bool holds_maps = std::any_of(resolved.items.begin(), resolved.items.end(),
                                      [](const Node& item) { return item.is_map(); });
  if (holds_maps) {
    for (std::size_t i = 0; i < resolved.items.size(); ++i) {
      expect_comments(resolved.items[i], printed.items.at(i), lines);
    }
    return;
  }
  const std::string& line = lines.at(static_cast<std::size_t>(printed.origin.line) - 1);
  EXPECT_TRUE(line.ends_with("  # " + resolved.origin.text())) << line;
}

/// The keys of a map that are a user's own stand as the layers bring them.
Node sorted(Node tree) {
  std::sort(tree.entries.begin(), tree.entries.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  for (Entry& entry : tree.entries) entry.value = sorted(std::move(entry.value));
  return tree;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

}  // namespace

void expect_origins(RandomConfig& random, const Declaration& declaration, const Node& written) {
  const TemporaryFolder folder;
  const Layers layers(random, written);
  const Node resolved = layers.resolved(declaration, folder);
  const Node together = resolve_written(declaration, written);
  EXPECT_TRUE(same_value(sorted(resolved), sorted(together))) << print(resolved) << print(together);
  for (const Leaf& leaf : leaves_of(written)) {
    if (leaf.keys.back() == kPreset || leaf.value.is_map()) continue;
    const Node* there = find_at(resolved, leaf.keys);
    ASSERT_NE(there, nullptr) << dotted(leaf.keys);
    // A section's short form by a class is its name; by a preset of the section it has no value.
    if (there->is_map() && leaf.value.is_scalar()) there = there->find("name");
    if (there != nullptr) layers.expect_place(leaf, there->origin);
  }
  PresetOrigins presets;
  presets.visit(declaration, written, {});
  for (const Leaf& leaf : leaves_of(resolved)) {
    const Keys section(leaf.keys.begin(), leaf.keys.end() - 1);
    // A class's name may come from its short form or preset.
    const bool is_name = leaf.keys.back() == "name";
    if (layers.wrote(leaf.keys) || is_name) continue;
    EXPECT_EQ(leaf.value.origin.text(), presets.text(leaf.keys)) << dotted(leaf.keys);
  }
  const std::string text = print(resolved, {.with_origins = true, .mark_defaults = true});
  Diagnostics diagnostics;
  expect_comments(resolved, parse_yaml(text, "printed", diagnostics), split_lines(text));
}

}  // namespace phalanx::config
