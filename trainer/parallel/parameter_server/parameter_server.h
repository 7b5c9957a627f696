// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/parallel_engine.h"
#include "trainer/ranks/ranks.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

/// How a model is served.
struct ParameterServerOptions {
  int64_t servers = 1;  ///< Ranks that serve: the first ones. They train, too.
  /// Every update waits for the gradients of all ranks. Else a server takes at its own steps what
  /// has come by then, and ranks train with the newest values that they get. Passes without
  /// gradients, `use` and `summon_full_params` have the same values on all ranks either way.
  bool synchronous = true;
  /// Gradients of embeddings that are only looked up travel as the rows that were
  /// (sparse_tables.h).
  bool sparse_embeddings = false;
};

namespace parameter_server {

/// The server of each parameter, the same on all ranks: in order, each to the one with the least.
std::vector<int64_t> deal(const std::vector<NamedParameter>& parameters, int64_t servers);

}  // namespace parameter_server

/// Data parallelism by parameter servers: each trained parameter lies with its optimizer on one of
/// the first ranks. All ranks pull the values before a forward pass, and push their gradients after
/// a backward one, by calls of each other (trainer/rpc); the server takes their mean. With
/// synchronous updates the results are those of DDP, except for the order of sums over three or
/// more ranks. In host memory only.
class ParameterServer final : public ParallelEngine {
 public:
  /// Every rank calls it. Rank 0's parameters and buffers go to all ranks first. Throws
  /// std::invalid_argument for a number of servers that the ranks do not have, and where gradients
  /// of embeddings shall be sparse and the model has none that can.
  ParameterServer(torch::nn::Module& module, const Ranks& ranks,
                  const ParameterServerOptions& options);
  ~ParameterServer() override;

  Loss run(c10::function_ref<Loss()> forward, bool synchronize) override;
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool synchronize) override;
  std::optional<int64_t> backward_passes() const override;
  void use(c10::function_ref<void()> action) override;
  void buffers_changed() override;
  /// Whole where it is served, elsewhere without elements.
  NamedParameter local(const NamedParameter& parameter) const override;
  GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const override;
  std::vector<std::string> description() const override;
  void summon_full_params(const std::function<void()>& look) override;

  /// The weights have been set back, on all ranks (a guard's rollback): the next pass of training
  /// begins with these, and gradients of those before are dropped. All ranks call it.
  void weights_restored();
  /// Ends the workers in order, once all ranks come here: no pass follows.
  void close();

 private:
  struct Impl;

  void before_forward(bool synchronize);
  void after_forward(std::vector<at::Tensor>& outputs);

  std::shared_ptr<Impl> impl_;
};

}  // namespace phalanx
