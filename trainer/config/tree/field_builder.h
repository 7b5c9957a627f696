// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "trainer/config/tree/binding.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/forward.h"

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

}  // namespace phalanx::config
