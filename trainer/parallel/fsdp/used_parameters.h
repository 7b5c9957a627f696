// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// Which parameters any rank's backward passes have reached in a step.
class UsedParameters {
 public:
  explicit UsedParameters(Ranks world);

  /// Tells the other ranks which this one has reached: a flag a parameter, in one order on all
  /// ranks.
  void start(const std::vector<bool>& here);
  /// Waits until the others' are there, unless this rank has reached all parameters: then it knows
  /// the answer, whatever the others say, and their message may come during the next step.
  void finish();
  /// After `finish`: whether any rank has reached parameter `i`.
  bool is_used(std::size_t i) const { return all_here_ || flags_[i] != 0; }

 private:
  Ranks world_;
  at::Tensor message_;
  Pending arrival_;
  bool all_here_ = false;
  const int* flags_ = nullptr;  ///< The flags in the message.
};

}  // namespace phalanx::fsdp
