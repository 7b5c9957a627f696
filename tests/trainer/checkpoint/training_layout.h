// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

class RegisteredGpt2;

/// How a model lies on its ranks while it is trained.
struct TrainingLayout {
  std::string name;
  int64_t ranks = 1;
  std::optional<ShardingStrategy> strategy;  ///< None: DDP, or one rank.
  std::optional<int64_t> shard_group_size;
};

/// A GPT-2 of 39 MiB with odd sizes and AdamW, under a layout. Its global batches are the
/// same under all of them.
class LaidOutTraining {
 public:
  /// Weights follow from the seed.
  LaidOutTraining(const TrainingLayout& layout, const Ranks& ranks, uint64_t seed);
  ~LaidOutTraining();

  /// One optimizer step, with the batch of that number; the loss over all ranks.
  double step(int64_t number);

  std::vector<ShardedTensorView> model() const;
  std::vector<ShardedTensorView> optimizer() const;
  /// All of model and optimizer that this rank holds.
  std::vector<ShardedTensorView> views() const;

 private:
  at::Tensor loss(const at::Tensor& tokens);

  Ranks ranks_;
  std::unique_ptr<RegisteredGpt2> model_;
  std::unique_ptr<ParallelEngine> engine_;  ///< None: one rank.
  std::shared_ptr<Optimizer> optimizer_;
  std::vector<NamedParameter> locals_;
};

}  // namespace phalanx
