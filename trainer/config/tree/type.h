// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

class Declaration;
struct Choice;

/// Bounds of a number.
struct Range {
  std::optional<double> low = {};
  std::optional<double> high = {};
  bool low_excluded = false;
  bool high_excluded = false;

  bool contains(double value) const;
  /// ">= 0", "> 0", "in [0, 1)", or empty; `unit` stands behind each bound but 0.
  std::string text(const std::string& unit = "") const;
};

/// What may stand at a place of a config, in run-time form.
struct Type {
  enum class Kind {
    boolean,
    integer,
    real,
    string,
    path,
    enumeration,
    duration,  ///< "90s"; bounds in seconds.
    list,
    map,
    section
  };

  Kind kind = Kind::string;
  bool nullable = false;
  std::string null_word;                    ///< What stands for null; empty: `null` itself.
  bool is_count = false;                    ///< For an integer: 100k may stand for 100000.
  Range range;                              ///< For a number.
  std::vector<std::string> choices;         ///< For an enumeration.
  std::vector<std::int64_t> choice_values;  ///< For an enumeration, beside choices.
  bool is_numbered = false;                 ///< For an enumeration: choice_values may be written.
  /// For text that a type of somebody's own is written as: its one spelling, or why it has none.
  std::function<Parsed<std::string>(const std::string& text)> canonical;
  std::string own_text;                  ///< How messages call such text: "a ratio (5%)".
  std::optional<std::size_t> size;       ///< For a list that has so many elements, no more or less.
  std::vector<Type> element;             ///< For a list or map: one type.
  const Declaration* section = nullptr;  ///< For a section with fields of its own.
  std::shared_ptr<const Choice> choice;  ///< For a section that picks a class, and has its fields.

  /// The type itself, or what a list or map holds in the end: what ranges and choices apply to.
  Type& leaf();
  const Type& leaf() const;

  /// No value, as a resolved tree holds it: null, or the word for it.
  Node no_value() const;
  /// Whether a node is no value: null, or the word for it, quoted or not.
  bool is_no_value(const Node& node) const;

  /// "an integer >= 1", "a list of 2 real numbers in [0, 1]", "one of norm, value, or null".
  std::string text() const;
};

}  // namespace phalanx::config
