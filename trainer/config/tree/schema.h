// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/config/tree/binding.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/forward.h"
#include "trainer/config/tree/member_count.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Refines one field; each call returns the builder, so that calls chain:
/// `s.field("lr", &Config::lr, "learning rate").at_least(0);`
/// Bounds and choices of a list, map or optional apply to what it holds.
template <class Member>
class FieldBuilder {
 public:
  using Leaf = detail::LeafType<Member>;

  explicit FieldBuilder(Field& field) : field_(&field) {}

  /// What a number counts, for messages and help: "steps", "seconds", "bytes".
  FieldBuilder& unit(std::string text) {
    field_->unit = std::move(text);
    return *this;
  }
  /// Closed lower bound.
  FieldBuilder& at_least(double low) {
    range().low = low;
    return *this;
  }
  /// Open lower bound.
  FieldBuilder& greater_than(double low) {
    range().low = low;
    range().low_excluded = true;
    return *this;
  }
  /// Closed upper bound.
  FieldBuilder& at_most(double high) {
    range().high = high;
    return *this;
  }
  /// Open upper bound.
  FieldBuilder& less_than(double high) {
    range().high = high;
    range().high_excluded = true;
    return *this;
  }
  /// Closed bounds.
  FieldBuilder& in_range(double low, double high) { return at_least(low).at_most(high); }
  /// Open lower bound of a duration, which is never negative.
  FieldBuilder& greater_than(
      std::chrono::milliseconds low) requires std::same_as<Leaf, std::chrono::milliseconds> {
    Range& range = field_->type.leaf().range;
    range.low = std::chrono::duration<double>(low).count();
    range.low_excluded = true;
    return *this;
  }
  /// Lets an integer be written in thousands, millions, ...: 100k, 1.5M, 2G, 1T.
  FieldBuilder& count() requires std::same_as<Leaf, std::int64_t> {
    field_->type.leaf().is_count = true;
    return *this;
  }
  /// A name that this field had once. It still works, with a warning. `unit` is what its plain
  /// numbers counted, where the field now wants a unit: {"timeout_seconds", "s"}.
  FieldBuilder& deprecated(std::string name, std::string unit = "") {
    field_->deprecated_names.push_back({std::move(name), std::move(unit)});
    return *this;
  }
  /// The names of an enum's values; the config says the name.
  FieldBuilder& choices(
      std::initializer_list<std::pair<const char*, Leaf>> names) requires std::is_enum_v<Leaf> {
    for (const auto& [name, value] : names) {
      field_->type.leaf().choices.emplace_back(name);
      field_->type.leaf().choice_values.push_back(static_cast<std::int64_t>(value));
    }
    return *this;
  }
  /// The classes that a Chosen picks from.
  FieldBuilder& out_of(Choice choice) requires std::same_as<Leaf, Chosen> {
    field_->type.leaf().choice = std::make_shared<const Choice>(std::move(choice));
    return *this;
  }
  /// Lets the numbers of an enum's values be written for their names, as other programs do.
  FieldBuilder& numbered() requires std::is_enum_v<Leaf> {
    field_->type.leaf().is_numbered = true;
    return *this;
  }
  /// The word that the config says, prints and shows in help for an optional without a value
  /// ("auto"); `null` may still be written. It must not be a value of the field.
  FieldBuilder& null_is(std::string word) {
    static_assert(detail::is_optional<Member>, "only an optional can be without a value");
    field_->type.null_word = std::move(word);
    return *this;
  }
  /// No default: the value is `???` unless it is given.
  FieldBuilder& mandatory() {
    field_->mandatory = true;
    return *this;
  }
  /// Lets a resumed run set another value than the run before it had.
  FieldBuilder& resume_may_change() {
    field_->resume_may_change = true;
    return *this;
  }
  /// A run whose config was written before there was this field goes on without a value in it,
  /// whatever the default is: what it does must not change. A new run gets the default.
  FieldBuilder& older_runs_have_none() {
    static_assert(detail::is_optional<Member>, "only an optional can be without a value");
    field_->older_runs_have_none = true;
    return *this;
  }

 private:
  Range& range() {
    static_assert(std::is_arithmetic_v<Leaf> && !std::same_as<Leaf, bool>,
                  "only numbers have bounds");
    return field_->type.leaf().range;
  }

  Field* field_;
};

/// What `static void describe(Schema<T>&)` of a config struct T fills: one line a member.
template <class T>
class Schema {
 public:
  explicit Schema(Declaration& declaration) : declaration_(&declaration) {}

  /// Declares a member: bool, int64_t, double, std::string, an enum (with choices), a path,
  /// std::chrono::milliseconds, another described struct, a Chosen (with out_of), a type with a
  /// Binding, or a std::optional, std::vector or std::map<std::string, ...> of one of these.
  template <class Member>
  FieldBuilder<Member> field(std::string name, Member T::*member, std::string meaning) {
    static const T probe{};
    Field field;
    field.name = std::move(name);
    field.meaning = std::move(meaning);
    field.type = detail::type_of<Member>();
    field.load = [member](void* object, const Type& type, const Node& value) {
      detail::from_node(static_cast<T*>(object)->*member, type, value);
    };
    field.store = [member](const void* object, const Type& type) {
      return detail::to_node(static_cast<const T*>(object)->*member, type);
    };
    field.offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&(probe.*member)) -
                                            reinterpret_cast<const char*>(&probe));
    return FieldBuilder<Member>(declaration_->add_field(std::move(field)));
  }

  /// Adds a check across fields: an error text, or nothing. Runs once each field by itself is
  /// right.
  template <std::invocable<const T&> Function>
  void check(Function function) {
    declaration_->add_check([function](const Node& section) -> std::optional<std::string> {
      return function(detail::read_described<T>(section));
    });
  }

  /// Names values of several fields: `section: NAME`, or `{preset: NAME, ...}`. `change` sets them
  /// in an object with the defaults.
  template <std::invocable<T&> Function>
  void preset(std::string name, std::string meaning, Function change) {
    // declaration<T>() is not ready while T is being described.
    declaration_->add_preset(std::move(name), std::move(meaning), [change](const Declaration& own) {
      T value{};
      change(value);
      return own.store(&value);
    });
  }

  /// Says that `fields` (dotted paths from here) have no effect while `applies`: a user who sets
  /// one of them is told the reason ("use_fsdp is false").
  template <std::predicate<const T&> Predicate>
  void ineffective(std::initializer_list<const char*> fields, std::string reason,
                   Predicate applies) {
    declaration_->add_ineffective(
        {{fields.begin(), fields.end()}, std::move(reason), [applies](const Node& section) {
           return applies(detail::read_described<T>(section));
         }});
  }

 private:
  Declaration* declaration_;
};

/// The declaration of a config struct, made once from its `describe`. Throws std::logic_error when
/// the description is wrong: Declaration::finish says how.
template <class T>
const Declaration& declaration() {
  static const Declaration result = [] {
    Declaration made(type_name(typeid(T)));
    Schema<T> schema(made);
    T::describe(schema);
    const T defaults{};
    made.finish(&defaults, member_count<T>());
    return made;
  }();
  return result;
}

/// The struct that a resolved section describes. Throws std::logic_error for one that was not
/// resolved with this struct's declaration.
template <class T>
T read(const Node& resolved_section) {
  return detail::read_described<T>(resolved_section);
}

/// The struct of a section in which nothing is given. Throws UserError where a field has no
/// default.
template <class T>
T read_defaults() {
  return read<T>(declaration<T>().defaults());
}

/// The section that read<T> turns back into `value`.
template <class T>
Node write(const T& value) {
  return declaration<T>().store(&value);
}

}  // namespace phalanx::config
