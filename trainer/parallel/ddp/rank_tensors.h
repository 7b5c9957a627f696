// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/stateful.h"
#include "trainer/parallel/ddp/rank_group.h"

namespace phalanx {

class Ranks;

/// Tensors by name that have other values on each rank: what a checkpoint keeps of them has one
/// more dimension, the first, of the ranks. Names and shapes are alike on all ranks.
class RankTensors final : public Stateful {
 public:
  /// Each rank is a group of its own.
  explicit RankTensors(const Ranks& ranks);

  /// `tensor` is contiguous, or no view of it can be filled in place (std::logic_error).
  void add(std::string name, at::Tensor tensor);

  /// Has what a checkpoint may have written count only if `restore` was called since: zeros
  /// otherwise, once.
  void begin();
  /// They have values that a checkpoint has brought, or that `begin` has made count.
  bool have_begun() const { return have_begun_; }

  std::vector<ShardedTensorView> tensors() override;
  void restore(std::string_view json) override;

 private:
  struct Named {
    std::string name;
    at::Tensor tensor;
  };

  RankGroup group_;
  std::vector<Named> tensors_;
  bool have_begun_ = false;
};

}  // namespace phalanx
