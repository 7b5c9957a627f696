// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "trainer/api/stateful.h"
#include "trainer/parallel/ddp/rank_group.h"

namespace phalanx {

class TrainerBase;

/// What checkpoints keep where groups of ranks have parameters of their own between two averagings:
/// those, and the states of their optimizers, of each group. The parts `model` and `optimizer` are
/// rank 0's; a run on as many groups goes on from these values in their place.
class GroupStates final : public Stateful {
 public:
  /// `trainer` outlives it.
  GroupStates(const TrainerBase& trainer, RankGroup group);

  std::vector<ShardedTensorView> tensors() override;
  /// Nothing is left to do: the values are in the model and the optimizers.
  void restore(std::string_view /*json*/) override {}

 private:
  const TrainerBase& trainer_;
  RankGroup group_;
};

}  // namespace phalanx
