// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/metrics/record.h"

namespace phalanx {

/// The values that other mixins add to the log's record of a step.
class StepValues {
 public:
  /// A tensor of one element stays where it is until the record is made.
  using Value = std::variant<double, at::Tensor>;

  /// Refuses these names too, which records of this run's steps may have.
  void reserve(std::vector<std::string> names) { reserved_ = std::move(names); }

  /// Adds a value of the mixin whose section of the config is `section`, for the record of `step`;
  /// it replaces one that this mixin has added for the same step. Throws std::logic_error for a
  /// name that is empty or has blanks, that a record has anyway, or that another mixin has used in
  /// this step; for a tensor of several elements; and where the step has ended.
  void add(std::string_view section, int64_t step, std::string name, Value value);

  /// Puts the values behind a record's fields, in the order in which they were added. Waits for a
  /// device that holds one. Throws std::logic_error for a name that one of the fields has.
  void append_to(std::vector<std::pair<std::string, FieldValue>>& fields) const;

  /// This step has ended, or the run begins or goes on behind it: drops its values, and takes those
  /// of other steps alone.
  void end(int64_t step);

 private:
  struct Added {
    std::string section;
    std::string name;
    Value value;
  };

  std::vector<std::string> reserved_;
  std::vector<Added> added_;
  std::optional<int64_t> ended_;  ///< None: no training has begun.
};

}  // namespace phalanx
