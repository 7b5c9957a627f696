// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "trainer/config/tree/node.h"
#include "trainer/config/tree/type.h"

namespace phalanx::config {

class Declaration;

/// The key of a section that picks one of its presets.
inline constexpr const char* kPreset = "preset";

/// Values for several fields of a section under one name: `model: gpt2-124m` or `parallel: ddp`,
/// or with other fields beside them `{preset: gpt2-124m, dropout: 0.1}`.
struct Preset {
  std::string name;
  std::string meaning;
  Node values;  ///< Those that differ from the section's defaults.
};

/// A section that picks a registered class by `name`, or by a preset of one, and holds that class's
/// fields.
struct Choice {
  std::string kind;                                 ///< "optimizer": how messages call it.
  std::function<std::vector<std::string>()> names;  ///< What there is.
  /// The fields of a class, or nullptr for an unknown name. Must outlive the declaration.
  std::function<const Declaration*(std::string_view)> find;
  std::string meaning;
  std::string default_name;  ///< Empty: a name must be given.
};

/// What a section's value may hold: the type's own declaration, or that of the class which the
/// value names; nullptr for a name that there is not.
const Declaration* section_of(const Type& type, const Node& value);

/// A name that a field had once.
struct DeprecatedName {
  std::string name;
  std::string unit;  ///< What its plain numbers counted, where the field now wants a unit.
};

/// One entry of a section: a value, a nested section, or a choice.
struct Field {
  std::string name;
  std::vector<DeprecatedName> deprecated_names;
  std::string meaning;
  std::string unit;
  Type type;
  bool mandatory = false;
  bool resume_may_change = false;
  bool older_runs_have_none = false;  ///< See FieldBuilder.
  Node default_value;  ///< `???` when mandatory; null for a section that has only its own defaults.

  /// Between a struct and a tree; set for fields that a struct declares.
  std::function<void(void* object, const Type& type, const Node& value)> load;
  std::function<Node(const void* object, const Type& type)> store;
  std::size_t offset = 0;  ///< The member's offset, to notice one that is described twice.
};

/// What a section of a config may hold: the one description that reading, checking, help, printing
/// and comparing use. Made from a struct by declaration<T>() (schema.h), or composed at run time.
class Declaration {
 public:
  using Check = std::function<std::optional<std::string>(const Node& section)>;
  using PresetStore = std::function<Node(const Declaration& own)>;

  /// Fields that have no effect for some values of the section's others.
  struct Ineffective {
    std::vector<std::string> fields;  ///< Dotted paths within the section.
    std::string reason;               ///< "use_fsdp is false"
    std::function<bool(const Node& section)> applies;
  };

  explicit Declaration(std::string name = "") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }  ///< The struct's name, for programmers.
  const std::vector<Field>& fields() const { return fields_; }
  const std::vector<Check>& checks() const { return checks_; }
  const std::vector<Preset>& presets() const { return presets_; }
  const std::vector<Ineffective>& ineffective() const { return ineffective_; }
  const Field* find(std::string_view field) const;
  const Preset* find_preset(std::string_view preset) const;
  /// The field that had this name once, or nullptr.
  const Field* find_deprecated(std::string_view name) const;
  std::vector<std::string> field_names() const;

  /// Adds a section with its own declaration, which must outlive this one.
  Declaration& add_section(std::string name, const Declaration& section, std::string meaning);

  /// Adds a section that picks a registered class. `section: some_name` is short for
  /// `section: {name: some_name}`.
  Declaration& add_choice(std::string name, Choice choice);

  /// Adds a field. Throws std::logic_error for a name that is no identifier or is taken.
  Field& add_field(Field field);
  void add_check(Check check) { checks_.push_back(std::move(check)); }
  /// `store` gives the fields as the preset sets them, by this declaration; what it leaves alone is
  /// dropped by `finish`. Throws std::logic_error for a name that is taken.
  void add_preset(std::string name, std::string meaning, PresetStore store);
  /// A user who sets one of the fields to another value than its default, while `applies`, is
  /// warned.
  void add_ineffective(Ineffective rule) { ineffective_.push_back(std::move(rule)); }

  /// Takes the defaults from a default-constructed object and checks the description itself. Throws
  /// std::logic_error naming the struct when a member is left out or described twice, an enum has
  /// no choices, a word for null is a value too, or the value of a default or of a preset is not
  /// allowed.
  void finish(const void* object, std::size_t member_count);

  /// A section in which nothing is given. Throws UserError where a field has no default.
  Node defaults() const;

  /// Fills an object from a resolved section; keys that are not the struct's are left to others.
  void load(void* object, const Node& section) const;

  /// The section that reads back to the object.
  Node store(const void* object) const;

  /// Whether a resumed run may change the value at a dotted path. `resolved` tells which class a
  /// choice picked; a path that is not declared may not change.
  bool resume_may_change(std::string_view path, const Node& resolved) const;

 private:
  void finish_fields(const void* object, std::size_t member_count);
  void finish_presets();

  std::string name_;
  std::vector<Field> fields_;
  std::vector<Check> checks_;
  std::vector<Preset> presets_;
  std::vector<PresetStore> preset_stores_;  ///< Beside presets_, until `finish`.
  std::vector<Ineffective> ineffective_;
};

/// A type's name as written in C++.
std::string type_name(const std::type_info& type);

}  // namespace phalanx::config
