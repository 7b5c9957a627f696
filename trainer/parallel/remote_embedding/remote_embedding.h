// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/parallel_engine.h"
#include "trainer/parallel/parallel_config.h"
#include "trainer/ranks/ranks.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

/// Which tables lie elsewhere, and where.
struct RemoteEmbeddingOptions {
  int64_t servers = 1;              ///< Ranks that hold them: the last ones, which do not train.
  std::vector<std::string> tables;  ///< Names of the modules ("wte"); empty: all LookupTables.
  DdpOptions ddp;                   ///< Of the rest of the model.
};

/// Data parallelism with embeddings on ranks of their own (PyTorch's tutorial "Combining
/// Distributed DataParallel with Distributed RPC Framework"): the last ranks hold the tables with
/// their optimizers, and serve them by calls (trainer/rpc); the others train the rest in DDP, as a
/// group.
///
/// A table that the model looks up alone (TableUse::rows) has no memory on the ranks that train:
/// each lookup brings the rows that it asks for, and after a backward pass that synchronizes the
/// gradients of these rows go back. One that the model computes with as a whole (a head that is
/// tied to it) is brought before each pass that may find it changed, and its gradients go back
/// whole. A server takes the mean over the ranks that train.
///
/// All ranks run the same passes, in any order, as for DistributedDataParallel. A server's calls no
/// forward: it waits until those of all others are over, and gives losses of 0 with their names.
/// With one rank that trains, losses, gradients and weights are those of one process bit for bit,
/// and with two those of DDP: except where a table is looked up several times in a pass or
/// gradients are clipped by their norm, whose sums have another order. In host memory only.
class RemoteEmbedding final : public ParallelEngine {
 public:
  /// Every rank calls it. Rank 0's parameters and buffers go to all ranks first. Throws
  /// std::invalid_argument for a number of servers that leaves no rank to train, and as
  /// remote_embedding::chosen_tables.
  RemoteEmbedding(torch::nn::Module& module, const Ranks& ranks,
                  const RemoteEmbeddingOptions& options);
  ~RemoteEmbedding() override;

  Loss run(c10::function_ref<Loss()> forward, bool synchronize) override;
  /// Throws std::logic_error: a server knows no outputs but losses.
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool synchronize) override;
  std::optional<int64_t> backward_passes() const override;
  /// With the whole model on all ranks, servers among them.
  void use(c10::function_ref<void()> action) override;
  void buffers_changed() override;
  /// Whole on the ranks that hold it, elsewhere without elements.
  NamedParameter local(const NamedParameter& parameter) const override;
  GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const override;
  std::vector<MemoryUse> memory() const override;
  std::vector<std::string> description() const override;
  std::vector<std::string> reduction_order() const override;
  void follow_reduction_order(const std::vector<std::string>& names) override;
  void summon_full_params(const std::function<void()>& look) override;

  /// Rows that lookups of this rank have brought so far.
  int64_t rows_brought() const;

  /// Ends the workers in order, once all ranks come here: no pass follows.
  void close();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace phalanx
