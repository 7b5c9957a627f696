// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

/// What keeps one part of a checkpoint from filling some views, one line each; of many, the first,
/// and how many more. Of many tensors of an optimizer that one side lacks, a line for each state
/// ("exp_avg") that it keeps of parameters.
struct Mismatches {
  std::vector<std::string> missing;     ///< In the checkpoint, with the nearest name there.
  std::vector<std::string> unexpected;  ///< With the nearest name of the views.
  std::vector<std::string> shapes;      ///< The name is the same, the shape is not.
  std::vector<std::string> dtypes;      ///< Name and shape are the same, the type is not.

  /// All of them, in this order.
  std::vector<std::string> lines() const;
};

/// How many tensors of a part a checkpoint and some views share, and how many only one side has.
struct TensorCounts {
  int64_t shared = 0;
  int64_t unexpected = 0;  ///< In the checkpoint alone.
  int64_t missing = 0;     ///< In the views alone.
};

TensorCounts count_tensors(const Contents& contents, std::string_view part,
                           std::span<const ShardedTensorView> views);

/// Compares the tensors of a part with views. Throws std::logic_error for views that do not hold
/// their range.
Mismatches find_mismatches(const Contents& contents, std::string_view part,
                           std::span<const ShardedTensorView> views);

}  // namespace phalanx
