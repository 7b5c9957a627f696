// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/stateful.h"
#include "trainer/parallel/ddp/power_sgd/counts.h"

namespace phalanx {
class Ranks;
}

namespace phalanx::power_sgd {

/// What a checkpoint keeps of PowerSGD that is the same on all ranks: the counts, and the Qs that
/// the next step begins with. Ps are made of these and are not kept.
class SharedState final : public Stateful {
 public:
  /// `counts` outlives it.
  SharedState(Counts& counts, const Ranks& ranks);

  void add(std::string name, const at::Tensor& tensor);

  std::vector<ShardedTensorView> tensors() override { return views_; }
  std::string json() const override { return counts_.json(); }
  void restore(std::string_view json) override { counts_.restore(json); }

 private:
  Counts& counts_;
  std::vector<int64_t> all_;  ///< Ranks: they share the writing.
  std::vector<ShardedTensorView> views_;
};

}  // namespace phalanx::power_sgd
