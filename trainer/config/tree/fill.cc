// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/fill.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "trainer/base/joined.h"
#include "trainer/base/nearest.h"
#include "trainer/config/syntax/merge.h"
#include "trainer/config/tree/check.h"
#include "trainer/config/tree/class_names.h"
#include "trainer/config/tree/replaced.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

namespace {

/// "found a list"
std::string found_text(const Node& value) {
  return value.is_blank ? "nothing is written here" : "found " + describe_value(value);
}

void set_origins(Node& node, const Origin& origin) {
  node.origin = origin;
  for (Node& item : node.items) set_origins(item, origin);
  for (Entry& entry : node.entries) {
    entry.key_origin = origin;
    set_origins(entry.value, origin);
  }
}

Node values_of(const Preset& preset) {
  Node values = preset.values;
  const auto source =
      std::make_shared<const Source>(Source{Source::Kind::preset, "preset " + preset.name, ""});
  set_origins(values, {source, 0, 0});
  return values;
}

/// Whether an entry was not written as such, but stands for a section's short form.
bool is_implied(const Entry& entry) {
  return entry.value.is_scalar() && entry.key_origin == entry.value.origin;
}

/// The entry that merging has made of a scalar in a map of a user's own keys, or the end. What an
/// interpolation has brought, the map with all its keys, has one place.
std::vector<Entry>::iterator scalar_among_keys(Node& map) {
  const bool one_place =
      std::all_of(map.entries.begin(), map.entries.end(),
                  [&map](const Entry& entry) { return entry.key_origin == map.origin; });
  return std::find_if(map.entries.begin(), map.entries.end(), [&](const Entry& entry) {
    return !one_place && entry.key == kName && is_implied(entry) && entry.key_origin.is_written();
  });
}

class Filler {
 public:
  Filler(const Declaration& whole, const Node& given, const KnownValues& known,
         ExplainKey explain_key, Diagnostics& diagnostics)
      : given_(given),
        known_(known),
        diagnostics_(diagnostics),
        unknown_keys_(whole, explain_key, diagnostics) {}

  void fill_section(const Declaration& declaration, Node& section, const SectionContext& context) {
    rename_deprecated(declaration, section, context);
    Node defaults = context.defaults == nullptr ? Node::map() : *context.defaults;
    lay_preset(declaration, section, context, defaults);
    Node filled = Node::map();
    filled.origin = section.origin;
    if (context.name != nullptr) filled.set(kName, *context.name);
    for (const Entry& entry : section.entries) {
      const bool is_name = context.name != nullptr && entry.key == kName;
      if (declaration.find(entry.key) == nullptr && !is_name) {
        unknown_keys_.report(declaration, entry, context);
      }
    }
    for (const Field& field : declaration.fields()) {
      const Node fallback = default_of(field, defaults);
      // A section has no value as a whole: each field has a default, or must be given.
      const bool by_fields = field.type.section != nullptr &&
                             field.type.kind == Type::Kind::section && fallback.is_map();
      Entry entry{field.name, {}, by_fields ? Node::map() : fallback};
      for (Entry& given : section.entries) {
        if (given.key == field.name) entry = std::move(given);
      }
      fill_field(field, entry.value, fallback, join_path(context.path, field.name));
      filled.entries.push_back(std::move(entry));
    }
    section = std::move(filled);
  }

 private:
  static Node default_of(const Field& field, const Node& defaults) {
    const Node* value = defaults.find(field.name);
    if (value != nullptr && (!field.mandatory || value->origin.source)) return *value;
    return field.mandatory ? Node::plain("???") : field.default_value;
  }

  void rename_deprecated(const Declaration& declaration, Node& section,
                         const SectionContext& context) {
    for (Entry& entry : section.entries) {
      const Field* field = declaration.find_deprecated(entry.key);
      if (field == nullptr) continue;
      const std::string path = join_path(context.path, entry.key);
      if (section.find(field->name) != nullptr) {
        diagnostics_.add(entry.key_origin, path,
                         "this is the former name of '" + field->name +
                             "', which is given as well; remove one of the two");
        continue;
      }
      const auto old = std::find_if(field->deprecated_names.begin(), field->deprecated_names.end(),
                                    [&](const DeprecatedName& d) { return d.name == entry.key; });
      const bool is_number = entry.value.is_scalar() && parse_real(entry.value.text).value;
      if (is_number && entry.value.type == ScalarType::plain) entry.value.text += old->unit;
      diagnostics_.warn(
          entry.key_origin, path,
          "this is called '" + field->name + "' now" +
              (is_number && !old->unit.empty() ? "; write " + field->name + ": " + entry.value.text
                                               : ""));
      entry.key = field->name;
    }
  }

  /// Lays the preset that a section names over its defaults, and takes the key out.
  void lay_preset(const Declaration& declaration, Node& section, const SectionContext& context,
                  Node& defaults) {
    const auto entry = std::find_if(section.entries.begin(), section.entries.end(),
                                    [](const Entry& e) { return e.key == kPreset; });
    if (entry == section.entries.end()) return;
    const std::vector<std::string> names =
        context.choice == nullptr ? preset_names(declaration) : presets_of_all(*context.choice);
    if (names.empty()) return;  // reported as an unknown key
    const std::string path = join_path(context.path, kPreset);
    const bool is_interpolation = has_interpolation(entry->value);
    const Node written = entry->value;
    const Node name = interpolated(written, path);
    section.entries.erase(entry);
    if (name.is_null() && !name.is_blank) return;
    if (is_interpolation && name.is_missing()) return;  // reported
    if (!name.is_scalar()) {
      diagnostics_.add(name.origin, path, found_text(name) + "; expected one of: " + joined(names));
    } else if (const Preset* preset = declaration.find_preset(name.text)) {
      drop_fields_of_preset(*preset, written, section, context.path, diagnostics_);
      merge(defaults, values_of(*preset));
    } else {
      diagnostics_.add(name.origin, path,
                       unknown_preset(declaration, context.choice, context.what, name.text));
    }
  }

  void fill_field(const Field& field, Node& value, const Node& fallback, const std::string& path) {
    if (field.type.choice) {
      if (field.type.nullable && value.is_null()) return;
      lay_over_default(value, fallback);
      fill_choice(*field.type.choice, value, path);
      return;
    }
    const bool is_section = field.type.kind == Type::Kind::section;
    if (value.is_null() && value.origin.is_written() && !is_section) {
      if (value.is_blank) {
        diagnostics_.add(value.origin, path,
                         "nothing is written here; expected " + field.type.text() +
                             (field.type.nullable ? "" : ", or null to take the default"));
        value = fallback;
        return;
      }
      if (!field.type.nullable) value = unset(value, fallback);
    }
    fill_value(field.type, value, fallback.is_map() ? &fallback : nullptr, path);
  }

  /// A section that names no class is one of the default's class, with what the default sets in it.
  static void lay_over_default(Node& section, const Node& fallback) {
    if (fallback.is_null() || fallback.is_missing()) return;
    const bool names_none = section.is_map() && section.find(kName) == nullptr;
    if (!section.is_null() && !names_none) return;
    Node whole = fallback;
    if (names_none) merge(whole, std::move(section));
    section = std::move(whole);
  }

  /// What counts where a null has taken back what was given. A value that must be given keeps the
  /// place, for the message that it is missing.
  static Node unset(const Node& null, Node fallback) {
    if (fallback.is_missing()) fallback.origin = null.origin;
    return fallback;
  }

  void fill_value(const Type& type, Node& value, const Node* defaults, const std::string& path) {
    if (type.kind == Type::Kind::list && value.is_list()) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        fill_value(type.element.front(), value.items[i], nullptr,
                   path + "[" + std::to_string(i) + "]");
      }
    }
    if (type.kind == Type::Kind::map && value.is_map()) {
      if (const auto scalar = scalar_among_keys(value); scalar != value.entries.end()) {
        diagnostics_.add(scalar->value.origin, path,
                         "found " + describe_value(scalar->value) + "; expected " + type.text());
        value.entries.erase(scalar);
      }
      for (Entry& entry : value.entries) {
        fill_value(type.element.front(), entry.value, nullptr, join_path(path, entry.key));
      }
    }
    if (type.kind != Type::Kind::section || value.is_missing()) return;
    if (type.choice) {
      if (!has_interpolation(value)) fill_choice(*type.choice, value, path);
      return;
    }
    if (value.is_null() && type.nullable) return;
    take_short_form(*type.section, value, path);
    if (has_interpolation(value)) return;
    if (!value.is_null() && !value.is_map()) {
      report_no_section(value, path, "");
      return;
    }
    fill_section(*type.section, value,
                 {.path = path, .what = "the section '" + path + "'", .defaults = defaults});
  }

  /// Makes `{preset: NAME}` of a section's short form, which merging may have made `{name: NAME}`.
  void take_short_form(const Declaration& section, Node& value, const std::string& path) {
    if (value.is_scalar() && !has_interpolation(value)) {
      const std::vector<std::string> names = preset_names(section);
      if (section.find_preset(value.text) == nullptr) {
        if (!names.empty()) {
          const auto near = nearest(value.text, names);
          report_no_section(
              value, path,
              ", or " + joined(names) + (near ? "; did you mean '" + *near + "'?" : ""));
          value = Node::null();
        }
        return;
      }
      Node name = std::exchange(value, Node::map());
      value.origin = name.origin;
      value.set(kPreset, std::move(name));
      return;
    }
    if (section.find(kName) != nullptr) return;
    const auto entry = std::find_if(value.entries.begin(), value.entries.end(),
                                    [](const Entry& e) { return e.key == kName; });
    if (entry == value.entries.end() || !is_implied(*entry)) return;
    Node name = std::move(entry->value);
    value.entries.erase(entry);
    take_short_form(section, name, path);
    if (name.is_map()) {
      value.set(kPreset, std::move(name.entries.front().value));
    } else if (name.is_scalar()) {
      report_no_section(name, path, "");
    }
  }

  void fill_choice(const Choice& choice, Node& value, const std::string& path) {
    if (value.is_missing()) return;
    if (value.is_list()) {
      report_no_section(value, path, ", or the name of one: " + joined(names_and_presets(choice)));
      return;
    }
    if (value.is_scalar()) {
      Node name = std::exchange(value, Node::map());
      value.origin = name.origin;
      value.set(kName, std::move(name));
    }
    drop_replaced(choice, value, path, given_, known_, diagnostics_);
    Node name = name_of(choice, value, path);
    const Declaration* chosen = name.is_scalar() ? choice.find(name.text) : nullptr;
    if (chosen == nullptr) {
      report_unknown_name(choice, name, path);
      value.set(kName, std::move(name));
      return;
    }
    name.type = ScalarType::string;
    fill_section(*chosen, value,
                 {.path = path,
                  .what = choice.kind + " '" + name.text + "'",
                  .name = &name,
                  .choice = &choice});
  }

  void report_unknown_name(const Choice& choice, const Node& name, const std::string& path) {
    if (!name.is_scalar()) {
      diagnostics_.add(
          name.origin, join_path(path, kName),
          found_text(name) + "; expected one of: " + joined(names_and_presets(choice)));
    } else if (!name.is_missing()) {
      diagnostics_.add(name.origin, join_path(path, kName),
                       unknown_class(choice.kind, name.text, names_and_presets(choice)));
    }
  }

  /// The class that a choice's section names, itself or by one of its presets (which then is noted
  /// as such in the section), or its default, or `???`.
  Node name_of(const Choice& choice, Node& section, const std::string& path) {
    const auto given = std::find_if(section.entries.begin(), section.entries.end(),
                                    [](const Entry& e) { return e.key == kName; });
    if (given != section.entries.end()) {
      const std::string name_path = is_implied(*given) ? path : join_path(path, kName);
      const Node written = given->value;
      Node name = interpolated(written, name_path);
      const bool is_class = name.is_scalar() && choice.find(name.text) != nullptr;
      const std::string owner =
          is_class || !name.is_scalar() ? "" : class_of_preset(choice, name.text);
      if (owner.empty()) return name;
      if (section.find(kPreset) == nullptr) section.set(kPreset, written);
      return named(owner, name.origin);
    }
    if (Node* preset = section.find(kPreset); preset != nullptr && preset->is_scalar()) {
      const Node name = interpolated(*preset, join_path(path, kPreset));
      if (name.is_missing()) *preset = name;  // reported
      const std::string owner = class_of_preset(choice, name.text);
      if (!owner.empty()) return named(owner, name.origin);
      if (choice.default_name.empty()) return name;  // reported as an unknown name
    }
    if (!choice.default_name.empty()) return Node::string(choice.default_name);
    Node missing = Node::plain("???");
    if (section.is_null()) missing.origin = section.origin;  // of the null that took it back
    return missing;
  }

  static Node named(const std::string& name, const Origin& origin) {
    Node node = Node::string(name);
    node.origin = origin;
    return node;
  }

  /// A name with its interpolations replaced at once: it decides which defaults there are, so it
  /// cannot refer to one. `???` where that has failed.
  Node interpolated(Node name, const std::string& path) {
    if (!has_interpolation(name)) return name;
    Node root = given_;
    if (Interpolator(root, diagnostics_, known_).resolve_tree(name, path)) return name;
    Node unknown = Node::plain("???");
    unknown.origin = name.origin;
    return unknown;
  }

  void report_no_section(const Node& value, const std::string& path, const std::string& also) {
    diagnostics_.add(value.origin, path,
                     found_text(value) + "; expected a section with fields" + also);
  }

  const Node& given_;
  const KnownValues& known_;
  Diagnostics& diagnostics_;
  UnknownKeys unknown_keys_;
};

}  // namespace

void fill(const Declaration& declaration, Node& tree, const KnownValues& known,
          ExplainKey explain_key, Diagnostics& diagnostics) {
  const Node given = tree;
  Filler(declaration, given, known, explain_key, diagnostics)
      .fill_section(declaration, tree, {.path = "", .what = "the config"});
}

}  // namespace phalanx::config
