// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/config/properties.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/help.h"
#include "trainer/config/text/json_schema.h"
#include "trainer/config/text/minimal.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

namespace {

using Json = nlohmann::json;

/// A file's text; an empty map needs its braces.
std::string file_text(const Node& written) {
  return print(written, {.escape_interpolation = false});
}

/// Whether a text resolves to a tree with these values.
bool resolves_to(const Declaration& declaration, const std::string& yaml, const Node& expected) {
  try {
    return same_value(resolve_text(declaration, yaml), expected);
  } catch (const UserError&) {
    return false;
  }
}

void compare_texts(const Node& written, const Node& resolved) {
  static const std::regex escaped(R"((\\*)\1\\\$\{)");
  if (written.is_scalar() && written.text.find("${") != std::string::npos) {
    EXPECT_EQ(resolved.text, std::regex_replace(written.text, escaped, "$1$${"));
  }
  for (std::size_t i = 0; i < written.items.size(); ++i) {
    compare_texts(written.items[i], resolved.items.at(i));
  }
  for (const Entry& entry : written.entries) {
    const Node* there = resolved.find(entry.key);
    if (there != nullptr) compare_texts(entry.value, *there);
  }
}

/// Takes each value in turn out of a tree, and calls `check` with its path and the section that it
/// was taken out of; then it is put back.
template <class Check>
void for_each_taken_out(Node& part, const std::string& path, const Check& check) {
  for (std::size_t i = 0; i < part.entries.size(); ++i) {
    const std::string inner = join_path(path, part.entries[i].key);
    if (!part.entries[i].value.entries.empty()) {
      for_each_taken_out(part.entries[i].value, inner, check);
      continue;
    }
    const auto place = part.entries.begin() + static_cast<std::ptrdiff_t>(i);
    const Entry entry = std::move(*place);
    part.entries.erase(place);
    check(inner, part);
    part.entries.insert(part.entries.begin() + static_cast<std::ptrdiff_t>(i), entry);
  }
}

void expect_same_json(const Node& node, const Json& json) {
  if (node.is_list() || node.is_map()) {
    ASSERT_EQ(json.size(), node.items.size() + node.entries.size());
    ASSERT_EQ(json.is_array(), node.is_list());
    for (std::size_t i = 0; i < node.items.size(); ++i) expect_same_json(node.items[i], json[i]);
    for (const Entry& entry : node.entries) {
      ASSERT_TRUE(json.contains(entry.key)) << entry.key;
      expect_same_json(entry.value, json[entry.key]);
    }
    return;
  }
  if (node.is_null()) {
    EXPECT_TRUE(json.is_null());
  } else if (node.type == ScalarType::boolean) {
    EXPECT_EQ(json, Json(node.text == "true"));
  } else if (node.type == ScalarType::integer) {
    EXPECT_EQ(json, Json(*parse_integer(node.text).value));
  } else if (node.type == ScalarType::real) {
    EXPECT_TRUE(json.is_number_float()) << json;
    EXPECT_EQ(json, Json(*parse_real(node.text).value));
  } else {
    EXPECT_EQ(json, Json(node.text));
  }
}

/// Without nulls and the sections' short forms by preset: what merging is not associative for.
Node layer(Node tree) {
  std::erase_if(tree.entries, [](const Entry& entry) { return entry.value.is_null(); });
  for (Entry& entry : tree.entries) entry.value = layer(std::move(entry.value));
  return tree;
}

Node merged(Node target, const Node& value) {
  merge(target, value);
  return target;
}

/// By their kind, where one class is chosen alone.
using ChoicesAlone = std::map<std::string, std::shared_ptr<const Choice>>;

/// What a class of several by name has beside the same class chosen alone.
Declaration beside(const Choice& choice, const Choice& alone) {
  Declaration fields;
  const std::string name = choice.names().front();
  for (const Field& field : choice.find(name)->fields()) {
    if (alone.find(name)->find(field.name) == nullptr) fields.add_field(field);
  }
  return fields;
}

/// The dotted paths of everything that a declaration declares, whichever class is chosen. The
/// fields of a class within one of its own kind, one of `open`, are not declared once more, nor are
/// those of several by name that stand above for one alone.
void declared_paths(const Declaration& declaration, const std::string& path,
                    std::set<std::string>& paths, ChoicesAlone& alone,
                    const std::set<std::string>& open = {}) {
  for (const Field& field : declaration.fields()) {
    std::string inner = join_path(path, field.name);
    if (!field.type.choice) paths.insert(inner);
    if (field.type.kind == Type::Kind::list) inner += "[]";
    if (field.type.kind == Type::Kind::map) inner += ".NAME";
    const Type& leaf = field.type.leaf();
    if (leaf.choice) {
      paths.insert(inner + ".name");
      std::set<std::string> within = open;
      const auto above = alone.find(leaf.choice->kind);
      if (field.type.kind == Type::Kind::map && above != alone.end()) {
        for (const auto& [kind, choice] : alone) within.insert(kind);
        declared_paths(beside(*leaf.choice, *above->second), inner, paths, alone, within);
        continue;
      }
      alone.emplace(leaf.choice->kind, leaf.choice);
      if (!within.insert(leaf.choice->kind).second) continue;
      for (const std::string& name : leaf.choice->names()) {
        declared_paths(*leaf.choice->find(name), inner, paths, alone, within);
      }
    } else if (leaf.kind == Type::Kind::section) {
      declared_paths(*leaf.section, inner, paths, alone, open);
    }
  }
}

/// The paths of all properties of a JSON schema, through alternatives, lists and maps.
void schema_paths(const Json& schema, const std::string& path, std::set<std::string>& paths) {
  if (!schema.is_object()) return;
  if (schema.contains("properties")) {
    for (const auto& [key, inner] : schema["properties"].items()) {
      paths.insert(join_path(path, key));
      schema_paths(inner, join_path(path, key), paths);
    }
  }
  if (schema.contains("anyOf")) {
    for (const Json& alternative : schema["anyOf"]) schema_paths(alternative, path, paths);
  }
  if (schema.contains("$ref")) paths.insert(path + ".name");
  if (schema.contains("items")) schema_paths(schema["items"], path + "[]", paths);
  if (schema.contains("additionalProperties")) {
    schema_paths(schema["additionalProperties"], path + ".NAME", paths);
  }
}

}  // namespace

Node resolve_text(const Declaration& declaration, const std::string& yaml) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
  Node resolved = resolve(declaration, std::move(tree), diagnostics);
  diagnostics.throw_if_any();
  return resolved;
}

Node resolve_written(const Declaration& declaration, const Node& written) {
  return resolve_text(declaration, file_text(written));
}

void expect_texts_as_written(const Declaration& declaration, const Node& written) {
  compare_texts(written, resolve_written(declaration, written));
}

void expect_print_reads_back(const Declaration& declaration, const Node& resolved) {
  const std::string text = print(resolved);
  const Node again = resolve_text(declaration, text);
  EXPECT_TRUE(same_value(again, resolved)) << text << "reads as\n" << print(again);
  EXPECT_EQ(print(again), text);
  const std::string commented = print(resolved, {.with_origins = true, .mark_defaults = true});
  EXPECT_TRUE(resolves_to(declaration, commented, resolved)) << commented;
}

void expect_minimal_suffices(const Declaration& declaration, const Node& resolved) {
  Node shown = minimal(declaration, resolved);
  EXPECT_TRUE(resolves_to(declaration, print(shown), resolved)) << print(shown) << print(resolved);
  for_each_taken_out(shown, "", [&](const std::string& path, const Node& section) {
    // A class that is the default is named where a field of it is.
    if (path.ends_with(".name") && !section.entries.empty()) return;
    EXPECT_FALSE(resolves_to(declaration, print(shown), resolved)) << path << " is not needed";
  });
}

void expect_json_holds_the_same(const Node& resolved) {
  expect_same_json(resolved, Json::parse(to_json(resolved)));
}

void expect_merging_is_associative(RandomConfig& random, const Declaration& declaration) {
  const Node a = layer(random.draw(declaration));
  const Node b = layer(random.draw(declaration));
  const Node c = layer(random.draw(declaration));
  const Node left = merged(merged(a, b), c);
  const Node right = merged(a, merged(b, c));
  EXPECT_TRUE(same_value(left, right)) << print(a) << print(b) << print(c);
}

void expect_told_everywhere(const std::string& name, const Declaration& declaration) {
  std::set<std::string> declared, listed, in_schema;
  ChoicesAlone alone;
  declared_paths(declaration, "", declared, alone);
  const std::vector<FieldEntry> fields = field_entries(declaration);
  for (const FieldEntry& field : fields) listed.insert(field.path);
  EXPECT_EQ(listed, declared);
  schema_paths(Json::parse(json_schema({{name, &declaration}})), "", in_schema);
  const std::string help_text = "\n" + help(fields);
  const std::string page = reference(fields);
  for (const std::string& path : declared) {
    EXPECT_NE(help_text.find("\n" + path + "  ("), std::string::npos) << path;
    EXPECT_NE(page.find("\n| `" + path + "` | "), std::string::npos) << path;
    EXPECT_TRUE(in_schema.contains(path)) << path;
    const std::string explained = "\n" + explain(declaration, path, nullptr);
    EXPECT_NE(explained.find("\n" + path + "  ("), std::string::npos) << path;
  }
}

}  // namespace phalanx::config
