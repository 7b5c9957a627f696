// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/loop/tiny.h"
#include "trainer/api/batch_source.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task_model.h"
#include "trainer/step/batch_transport.h"
#include "trainer/step/pass_context.h"
#include "trainer/step/pass_errors.h"
#include "trainer/step/step_hooks.h"
#include "trainer/step/step_parts.h"

namespace phalanx::tiny {

/// An engine of one rank that notes which passes reduce gradients.
class NotingEngine : public ParallelEngine {
 public:
  Loss run(c10::function_ref<Loss()> forward, bool synchronize) override {
    synchronized.push_back(synchronize);
    return forward();
  }

  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool synchronize) override {
    synchronized.push_back(synchronize);
    return forward();
  }

  std::vector<bool> synchronized;  ///< By pass.
};

/// Notes what is called within a step.
struct NotingHooks : StepHooks {
  void before_forward(const Batch&) override { calls.emplace_back("before forward"); }
  void after_loss(const Batch&, const Loss&) override { calls.emplace_back("after loss"); }
  void after_backward() override { calls.emplace_back("after backward"); }

  std::vector<std::string> calls;
};

/// What a step of the tiny model goes by, in double precision, without a trainer; step 7 runs.
struct TinyStep {
  explicit TinyStep(Parts chosen = {}, int64_t batch_size = 4,
                    std::vector<OptimizerPart> optimizers = {})
      : parts(std::move(chosen)),
        data(parts.task->build_data(Phase::train, {.batch_size = batch_size})),
        step_parts({.task_model = TaskModel(parts.task, parts.model),
                    .optimizers = optimizers.empty() ? std::vector{optimizer_part(parts)}
                                                     : std::move(optimizers),
                    .double_precision = true}),
        transport(step_parts),
        errors(step_parts, state, batch_size, [] { return std::vector<std::string>{"an advice"}; }),
        context{step_parts, state, time, transport, errors} {
    step_parts.wrap(step_parts.task_model().wrapped_by(engine));
    step_parts.group_parameters();
    step_parts.bind_optimizers(/*stops_on_nonfinite=*/true);
    state.step = 7;
  }
  TinyStep(const TinyStep&) = delete;
  TinyStep& operator=(const TinyStep&) = delete;

  std::vector<double> weights() const { return weights_of(*parts.model); }

  /// Gives every element of every gradient this value.
  void set_gradients(double value) {
    for (const NamedParameter& parameter : step_parts.parameters()) {
      parameter.tensor.mutable_grad() =
          tensors::full(parameter.tensor.sizes(), value, parameter.tensor.options());
    }
  }

  Parts parts;
  std::unique_ptr<BatchSource> data;
  std::shared_ptr<NotingEngine> engine = std::make_shared<NotingEngine>();
  State state;
  TimeSplit time;
  StepParts step_parts;
  BatchTransport transport;
  PassErrors errors;
  PassContext context;
};

}  // namespace phalanx::tiny
