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
#include "trainer/api/task_model.h"
#include "trainer/parallel/ddp/uneven_inputs.h"
#include "trainer/parallel/parallel_config.h"
#include "trainer/ranks/ranks.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

class CommHook;

/// Data parallelism around a module whose replicas are alike on all ranks: during backward the
/// gradients are reduced to their mean in buckets, while the next ones are still computed. It
/// drives c10d::Reducer, the engine under torch.nn.parallel.DistributedDataParallel, as that class
/// does: losses, gradients and parameters are the same bit for bit.
///
/// Passes may come in any order: several forward passes before a backward one, several backward
/// passes of one graph (retain_graph), a forward pass without one, evaluations between. A backward
/// pass reduces where the newest forward pass with gradients synchronizes; the gradients of earlier
/// ones are in the mean.
class DistributedDataParallel final : public ParallelEngine, public CommonBuffers {
 public:
  /// `sync_module_states`: rank 0's parameters and buffers go to all ranks first. Throws
  /// std::logic_error for a module without a parameter that requires a gradient, c10::Error for
  /// parameters that differ in number, shape or type between ranks, CommunicationError. `hook`:
  /// in the place of the one that the options name, where its states are kept, or its lines told.
  /// `sync_batchnorm`: as for prepare_ddp.
  DistributedDataParallel(torch::nn::Module& module, const Ranks& ranks, const DdpOptions& options,
                          bool sync_module_states = true, std::shared_ptr<CommHook> hook = nullptr,
                          bool sync_batchnorm = false);
  ~DistributedDataParallel() override;

  /// All of it, as every rank holds it: they share the writing of checkpoints. Rank 0's alone
  /// counts where a comm hook lets ranks come to other values.
  NamedParameter local(const NamedParameter& parameter) const override;

  void buffers_changed() override;
  std::vector<std::string> reduction_order() const override;
  void follow_reduction_order(const std::vector<std::string>& names) override;

  /// Where a comm hook lets ranks come to other gradients: the largest norm of all ranks' is the
  /// total, so that all decide alike by it.
  GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const override;

  std::optional<int64_t> backward_passes() const override;
  std::vector<at::Tensor> common_buffers() const override;

  /// The comm hook, whose `kept_states` belong into checkpoints; none: buckets are summed.
  CommHook* comm_hook() const;
  /// To be called after each step of the optimizer with a comm hook that averages parameters
  /// (post_localSGD), on all ranks; the trainer does.
  void after_update();

  Loss run(c10::function_ref<Loss()> forward, bool synchronize) override;
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool synchronize) override;
  void use(c10::function_ref<void()> action) override;

  /// Runs a training loop whose number of passes differs between the ranks (torch's
  /// DistributedDataParallel.join). A rank whose loop has ended takes part in the reductions of the
  /// others with zeros, until all have ended; then the parameters, and buffers that are broadcast,
  /// of the largest of the ranks that ended last go to all. Every rank calls it. In the loop each
  /// forward pass with gradients is followed by its backward pass before the next; those without
  /// gradients exchange nothing, and other collectives would find no partner. Throws InputsRanOut
  /// where `inputs` says so, CommunicationError, std::logic_error for synchronized batch
  /// normalization, or a comm hook that averages parameters, without `throw_on_early_termination`,
  /// and what `loop` throws, as it comes: the other ranks then wait for this one until its process
  /// ends, or the timeout.
  void join(const std::function<void()>& loop, const UnevenInputs& inputs = {});

  /// Calls `function` as a forward pass of the module; its result's backward reduces the gradients.
  at::Tensor forward(const std::function<at::Tensor()>& function, bool synchronize = true);

 private:
  struct Impl;

  void before_forward(bool synchronize);
  // Returns the tensors to go on with in place of the pass's results.
  std::vector<at::Tensor> after_forward(std::vector<at::Tensor> outputs);
  void shadow_passes();

  std::unique_ptr<Impl> impl_;
};

/// Wraps a module for a custom loop (TorchTNT's prepare_ddp). `sync_module_states`: rank 0's
/// parameters and buffers go to all ranks first (its init_sync). `sync_batchnorm`: batch
/// normalization is over the batches of all ranks, in training (torch.nn.SyncBatchNorm).
std::unique_ptr<DistributedDataParallel> prepare_ddp(torch::nn::Module& module, const Ranks& ranks,
                                                     const DdpOptions& options = {},
                                                     bool sync_module_states = true,
                                                     bool sync_batchnorm = false);

}  // namespace phalanx
