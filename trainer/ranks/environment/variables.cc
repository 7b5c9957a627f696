// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/variables.h"

#include <algorithm>
#include <charconv>

#include "trainer/base/user_error.h"

namespace phalanx {

bool Variables::has_all(std::initializer_list<const char*> names) const {
  return std::ranges::all_of(names, [this](const char* name) { return has(name); });
}

std::string_view Variables::text(const char* name) const {
  const char* value = lookup_(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::string_view Variables::required(const char* name) const {
  if (!has(name)) {
    refuse_variables(std::string("the environment variable ") + name + " is not set");
  }
  return text(name);
}

int64_t Variables::number(const char* name, int64_t low, int64_t high) const {
  const std::string_view digits = required(name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    refuse_variables(std::string(name) + " is '" + std::string(digits) +
                     "', which is no whole number");
  }
  if (value < low || value > high) {
    refuse_variables(std::string(name) + " is " + std::to_string(value) + ", but must lie from " +
                     std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

std::optional<int64_t> Variables::optional_number(const char* name, int64_t low,
                                                  int64_t high) const {
  return has(name) ? std::optional(number(name, low, high)) : std::nullopt;
}

void refuse_variables(const std::string& text) {
  throw UserError(text +
                  ". Launchers set these variables (torchrun, srun, mpirun); launcher.name says "
                  "whose count, launcher.name=alone that none do");
}

}  // namespace phalanx
