// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/stateful.h"

namespace phalanx {

class Ranks;

/// Tensors by name that have other values on each group of ranks: what a checkpoint keeps of them
/// has one more dimension, the first, of the groups. Each rank gives its group's; the names and
/// shapes are alike on all ranks.
class RankTensors final : public Stateful {
 public:
  /// This rank's place among equal groups of consecutive ranks.
  struct Group {
    int64_t index = 0;
    int64_t count = 1;
    int64_t size = 1;
  };

  /// Each rank a group of its own.
  static Group each(const Ranks& ranks);

  explicit RankTensors(Group group) : group_(group) {}

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

  Group group_;
  std::vector<Named> tensors_;
  bool have_begun_ = false;
};

}  // namespace phalanx
