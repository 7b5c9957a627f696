// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/common_buffers.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"
#include "trainer/parallel/fsdp/summary.h"
#include "trainer/parallel/placement.h"
#include "trainer/ranks/ranks.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

/// Fully sharded data parallelism around a module that is alike on all ranks: each rank keeps a
/// shard of every unit's parameters, gradients and optimizer state; a unit is whole only around its
/// forward and backward pass. The semantics of torch.distributed.fsdp, the memory of fully_shard:
///
///   forward      the root is gathered; before each unit's forward that unit is; after it, its
///                parameters are given up, except in the *_GRAD_OP strategies
///                (`reshard_after_forward`: all, none, or all but a part of a few ranks')
///   backward     before a unit's backward it is gathered again, and the next one behind it is
///                begun (BACKWARD_PRE); after it, its parameters are given up and its gradients
///                reduced to shards, and summed over copies, while the next units compute
///   the end      what has not been reduced is, the root last; then gradients become means
///
/// At most two units are whole at a time beside the root, where the strategy gives them up at all.
/// (What is nested is whole with what is around it, and a unit without an input that needs a
/// gradient until the end of the pass.) Collectives are begun in one order on every rank, on all
/// groups, and none waits for another to be begun: so two cannot wait for each other.
///
/// Passes may come in any order: several forward passes before a backward one, several backward
/// passes of one graph (retain_graph), a forward pass without one, evaluations between. A backward
/// pass reduces where the newest forward pass with gradients synchronizes. None may come after the
/// weights have moved: it would compute with the new ones. Averaged gradients are added to those
/// that `local_parameters` have: zero them between optimizer steps.
class FullyShardedDataParallel final : public ParallelEngine, public CommonBuffers {
 public:
  /// `sync_module_states`: rank 0's parameters and buffers go to all ranks first. The module's
  /// parameters have no values outside of their unit's forward and backward pass from then on:
  /// reading one throws c10::Error that names it. Summon them, or use `local`. Throws UserError for
  /// options that do not fit the world or the module. `sync_batchnorm`: batch normalization is over
  /// the batches of all ranks, in training (torch.nn.SyncBatchNorm).
  FullyShardedDataParallel(torch::nn::Module& module, const Ranks& ranks, ShardingStrategy strategy,
                           const FsdpOptions& options, bool sync_module_states = true,
                           const ModelPlacement& placement = {}, bool sync_batchnorm = false);
  ~FullyShardedDataParallel() override;

  Loss run(c10::function_ref<Loss()> forward, bool synchronize) override;
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool synchronize) override;
  std::optional<int64_t> backward_passes() const override;
  void use(c10::function_ref<void()> action) override;
  void buffers_changed() override;
  std::vector<at::Tensor> common_buffers() const override;
  NamedParameter local(const NamedParameter& parameter) const override;
  GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const override;
  std::optional<at::ScalarType> input_dtype() const override;
  std::vector<MemoryUse> memory() const override;
  std::vector<std::string> description() const override;

  /// Calls `function` as a forward pass of the module; its result's backward reduces the gradients
  /// if `synchronize`.
  at::Tensor forward(const std::function<at::Tensor()>& function, bool synchronize = true);

  /// This rank's part of every parameter of the module, in the module's order: what an optimizer
  /// moves.
  std::vector<NamedParameter> local_parameters() const;

  /// Makes all parameters whole while `look` runs, in the shards' own precision. With `write_back`
  /// what it writes on rank 0 becomes everybody's values; without, it must not write.
  void summon_full_params(const std::function<void()>& look, bool write_back);
  void summon_full_params(const std::function<void()>& look) override {
    summon_full_params(look, /*write_back=*/false);
  }

  /// The units in their order, the root last.
  std::vector<ShardedUnitSummary> summary() const;

 private:
  struct Impl;

  void before_forward(bool synchronize);
  void after_forward();

  std::shared_ptr<Impl> impl_;
};

/// Wraps a module for a custom loop (TorchTNT's prepare_fsdp).
std::unique_ptr<FullyShardedDataParallel> prepare_fsdp(
    torch::nn::Module& module, const Ranks& ranks,
    ShardingStrategy strategy = ShardingStrategy::full_shard, const FsdpOptions& options = {},
    bool sync_module_states = true, const ModelPlacement& placement = {},
    bool sync_batchnorm = false);

}  // namespace phalanx
