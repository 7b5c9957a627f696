// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/fields.h"

#include <algorithm>
#include <map>
#include <utility>

#include "trainer/base/joined.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {

namespace {

/// As a user would write it: an interpolation is one, so nothing is escaped.
std::string as_written(const Node& value) {
  return print_inline(value, {.escape_interpolation = false});
}

std::vector<std::string> few_values(const Type& type) {
  std::vector<std::string> values = type.choices;
  if (type.kind == Type::Kind::boolean) values = {"true", "false"};
  if (type.nullable) values.push_back(type.null_word.empty() ? "null" : type.null_word);
  return values.size() > 1 ? values : std::vector<std::string>();
}

// A path in parts, each with the sign that begins it: "a.b[0]" is "a", ".b", "[0]".
std::vector<std::string_view> signed_parts(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".[", 1), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

// An entry's path with the names and numbers of a config's path, as far as that leads to it.
std::string as_in(std::string_view path, const std::string& entry) {
  std::string text;
  bool leads_there = true;
  const std::vector<std::string_view> given = signed_parts(path);
  const std::vector<std::string_view> parts = signed_parts(entry);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    leads_there = leads_there && i < given.size();
    const std::string_view here = leads_there ? given[i] : std::string_view();
    const bool is_name = parts[i] == ".NAME" && here.starts_with('.') && here.size() > 1;
    const bool is_number = parts[i] == "[]" && here.starts_with('[');
    text += is_name || is_number ? here : parts[i];
    leads_there = leads_there && (is_name || is_number || here == parts[i]);
  }
  return text;
}

class Walk {
 public:
  explicit Walk(std::string_view target) : target_(target) {}

  void section(const Declaration& declaration, const Node* defaults, const std::string& path) {
    for (const Field& field : declaration.fields()) {
      const std::string field_path = join_path(path, field.name);
      const Node* inherited = defaults == nullptr ? nullptr : defaults->find(field.name);
      const Node& value = inherited == nullptr ? field.default_value : *inherited;
      if (field.type.choice) {
        FieldEntry& entry = add(field, field_path + ".name");
        if (field.type.choice->default_name.empty() && !field.mandatory) {
          entry.default_text = as_written(value);
        }
        add_classes(*field.type.choice, entry, field_path);
      } else if (field.type.leaf().choice) {
        list_of_choices(field, value, field_path);
      } else if (field.type.leaf().kind == Type::Kind::section) {
        nested(field, value, field_path);
      } else {
        FieldEntry& entry = add(field, field_path);
        if (!field.mandatory) entry.default_text = as_written(value);
        entry.values = few_values(field.type);
        entry.is_map = field.type.kind == Type::Kind::map;
      }
    }
  }

  std::vector<FieldEntry> take() { return std::move(entries_); }

 private:
  FieldEntry& add(const Field& field, const std::string& path) {
    FieldEntry entry;
    entry.path = as_in(target_, path);
    entry.condition = as_in(target_, condition_);
    entry.type = field.type.text();
    entry.unit = field.unit;
    entry.mandatory = field.mandatory;
    entry.resume_may_change = field.resume_may_change;
    entry.meaning = field.meaning;
    entry.deprecated_names = field.deprecated_names;
    entries_.push_back(std::move(entry));
    return entries_.back();
  }

  void nested(const Field& field, const Node& value, const std::string& path) {
    const Type& type = field.type;
    const bool is_list = type.kind == Type::Kind::list;
    const bool is_map = type.kind == Type::Kind::map;
    const bool own_defaults = !is_list && !is_map && !type.nullable;
    FieldEntry& entry = add(field, path);
    entry.is_section = true;
    entry.presets = type.leaf().section->presets();
    if (!field.mandatory && !own_defaults && !(value.is_map() && !is_map)) {
      entry.default_text = as_written(value);
    }
    const std::string inner = is_list ? path + "[]" : is_map ? path + ".NAME" : path;
    section(*type.leaf().section, value.is_map() && !is_map ? &value : nullptr, inner);
  }

  void list_of_choices(const Field& field, const Node& value, const std::string& path) {
    FieldEntry& entry = add(field, path);
    entry.is_section = true;
    if (!field.mandatory) entry.default_text = as_written(value);
    const bool is_map = field.type.kind == Type::Kind::map;
    const Choice& choice = *field.type.leaf().choice;
    const std::string element = path + (is_map ? ".NAME" : "[]");
    FieldEntry& name = add(field, element + ".name");
    name.meaning = "which " + choice.kind;
    const auto above = walked_.find(choice.kind);
    if (is_map && above != walked_.end()) {
      name_classes(choice, name);
      const Choice& alone = *above->second;
      add_beside(choice, alone, element);
      if (leads_to(element)) walk_classes(choice, element, &alone);
    } else {
      add_classes(choice, name, element);
    }
  }

  // The fields that every class has here beside those that stand above, where one is chosen alone.
  void add_beside(const Choice& choice, const Choice& above, const std::string& path) {
    const std::vector<std::string> names = choice.names();
    if (names.empty()) return;
    Declaration beside;
    const Declaration& alone = *above.find(names.front());
    for (const Field& field : choice.find(names.front())->fields()) {
      if (alone.find(field.name) == nullptr) beside.add_field(field);
    }
    const std::vector<std::string> outer = open_;
    for (const auto& [kind, walked] : walked_) open_.push_back(kind);
    section(beside, nullptr, path);
    open_ = outer;
  }

  // `entry` is of the class's name.
  static void name_classes(const Choice& choice, FieldEntry& entry) {
    const std::vector<std::string> names = choice.names();
    entry.values = names;
    entry.type = "one of " + (names.empty() ? "none registered" : joined(names));
    if (entry.default_text == "null") entry.type += ", or null";
    if (!choice.default_name.empty()) entry.default_text = choice.default_name;
    for (const std::string& name : names) {
      const auto& presets = choice.find(name)->presets();
      entry.presets.insert(entry.presets.end(), presets.begin(), presets.end());
    }
  }

  // The same, and the fields of each class.
  void add_classes(const Choice& choice, FieldEntry& entry, const std::string& path) {
    name_classes(choice, entry);
    walked_.emplace(choice.kind, &choice);
    // A class that has one of its own kind within: its fields stand above.
    const bool is_open = std::find(open_.begin(), open_.end(), choice.kind) != open_.end();
    if (!is_open || leads_to(path)) walk_classes(choice, path, nullptr);
  }

  // `alone`: only those fields that the classes have where one is chosen alone; null: all.
  void walk_classes(const Choice& choice, const std::string& path, const Choice* alone) {
    open_.push_back(choice.kind);
    const std::string outer = std::exchange(condition_, "");
    for (const std::string& name : choice.names()) {
      condition_ = path + ".name: " + name;
      const Declaration& declared = *choice.find(name);
      section(alone == nullptr ? declared : shared(declared, *alone->find(name)), nullptr, path);
    }
    condition_ = outer;
    open_.pop_back();
  }

  static Declaration shared(const Declaration& declared, const Declaration& other) {
    Declaration both;
    for (const Field& field : declared.fields()) {
      if (other.find(field.name) != nullptr) both.add_field(field);
    }
    return both;
  }

  // Whether the target is at or below this place.
  bool leads_to(const std::string& path) const {
    return !target_.empty() && is_at_or_below(target_, as_in(target_, path));
  }

  std::string_view target_;
  std::string condition_;
  std::vector<std::string> open_;                // The kinds whose classes are being walked.
  std::map<std::string, const Choice*> walked_;  // Where the classes of a kind were first walked.
  std::vector<FieldEntry> entries_;
};

}  // namespace

std::string FieldEntry::facts() const {
  std::string text = type;
  if (!unit.empty()) text += "; in " + unit;
  if (mandatory) text += "; mandatory";
  if (default_text) text += "; default " + *default_text;
  if (resume_may_change) text += "; a resume may change it";
  for (const DeprecatedName& old : deprecated_names) text += "; formerly " + old.name;
  return text;
}

bool is_at_or_below(std::string_view path, std::string_view section) {
  if (!path.starts_with(section)) return false;
  return path.size() == section.size() || path[section.size()] == '.' ||
         path[section.size()] == '[';
}

std::vector<FieldEntry> field_entries(const Declaration& declaration) {
  return field_entries(declaration, "");
}

std::vector<FieldEntry> field_entries(const Declaration& declaration, std::string_view path) {
  Walk walk(path);
  walk.section(declaration, nullptr, "");
  return walk.take();
}

}  // namespace phalanx::config
