// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Model parallelism by stages: each rank holds some of the model's units, in their order, and all
/// ranks run the same passes over the same samples. Activations go to the next stage and gradients
/// to the one before, by calls of each other (trainer/rpc). Micro-batches overlap (1F1B, Narayanan
/// et al. 2021): a stage delays each backward pass until the stages behind it can have done theirs,
/// and keeps the activations of at most as many micro-batches as there are stages from it on.
///
/// The model's forward calls its units once each, in the order of their registration, each with
/// the result of the one before, one tensor of the shape of the first argument, and without work
/// between them. It runs on every stage: what comes before the units is computed everywhere,
/// without values of parameters, and a stage leaves the pass behind its last unit. Parameters that
/// a stage does not hold are NaN there, without memory: a model of another form gets a loss that is
/// not finite, unless it only compares such values (where, argmax). Buffers do not change in
/// training.
///
/// A pass with gradients has one backward pass or none, on all stages alike. That of the pass with
/// `synchronize` is the last one before gradients are used, once the losses of passes without one
/// are gone. Another order throws std::logic_error. A stage that leaves out another one than the
/// last stage throws std::logic_error in its next backward passes. As the last stage alone knows
/// the loss, ranks that decide by it agree first (Ranks::all_reduce).
///
/// Losses and gradients are those of one process, except for the order of two sums: the gradients
/// of a parameter that lies outside the units, summed over the micro-batches of each of two stages,
/// and the norm of all gradients. Each stage draws its own random numbers for dropout. In host
/// memory only. The module stays as it is at the end of its Pipeline: NaN in what the stage does
/// not hold. `summon_full_params` gives the whole model before that.
class Pipeline final : public ParallelEngine {
 public:
  /// Every rank calls it; all hold the same values. Throws std::invalid_argument for a model that
  /// cannot be divided (pipeline::divide).
  Pipeline(torch::nn::Module& module, const Ranks& ranks);
  ~Pipeline() override;

  /// On stages before the last one the losses of a pass with gradients are 0, in the last stage's
  /// dtypes, so that sums over ranks are those of the model; of a pass without, they are the last
  /// stage's. Throws std::logic_error for a model of another form, and for a loss of other parts
  /// than in the first pass with gradients.
  Loss run(c10::function_ref<Loss()> forward, bool synchronize) override;
  /// Throws std::logic_error: a stage knows no outputs but losses.
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool synchronize) override;
  std::optional<int64_t> backward_passes() const override;
  /// With all parameters on all ranks.
  void use(c10::function_ref<void()> action) override;
  /// Whole on the stages that hold it, elsewhere without elements.
  NamedParameter local(const NamedParameter& parameter) const override;
  GradientNorm measure_gradients(const std::vector<NamedParameter>& parameters) const override;
  std::vector<MemoryUse> memory() const override;
  std::vector<std::string> description() const override;
  void summon_full_params(const std::function<void()>& look) override;

  /// The most micro-batches whose activations this stage has kept at a time.
  int64_t most_in_flight() const;

  /// Ends the workers in order, once all ranks come here: no pass follows.
  void close();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace phalanx
