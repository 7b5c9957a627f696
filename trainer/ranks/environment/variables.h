// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// Looks a variable up; nullptr when it is not set. `std::getenv`, or a test's own.
using VariableLookup = std::function<const char*(const char* name)>;

/// The variables that launchers set. An empty one counts as one that is not set, as in torchrun.
class Variables {
 public:
  explicit Variables(const VariableLookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return !text(name).empty(); }
  bool has_all(std::initializer_list<const char*> names) const;

  /// Empty where it is not set.
  std::string_view text(const char* name) const;
  /// Throws UserError where it is not set.
  std::string_view required(const char* name) const;

  /// A whole number in [low, high]. Throws UserError where it is not set, no number or outside.
  int64_t number(const char* name, int64_t low, int64_t high) const;
  /// nullopt where it is not set.
  std::optional<int64_t> optional_number(const char* name, int64_t low, int64_t high) const;

 private:
  const VariableLookup& lookup_;
};

/// Throws UserError: what is wrong with the variables, and who sets them.
[[noreturn]] void refuse_variables(const std::string& text);

}  // namespace phalanx
