// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/model_base.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/loop/training_config.h"
#include "trainer/step/optimizer_part.h"

/// A task, model, optimizer and schedule that are small enough to compute by hand: what the tests
/// of the loop, the mixins and the commands train.
namespace phalanx::tiny {

/// A model that predicts one number for each row.
class Regressor {
 public:
  static constexpr std::string_view kInterface = "Regressor";

  virtual ~Regressor() = default;

  /// [samples] for rows [samples, 3].
  virtual at::Tensor predict(const at::Tensor& rows) = 0;
  virtual at::ScalarType dtype() const = 0;
  virtual bool in_training() const = 0;
};

/// A micro-batch: which samples of the data set.
struct Samples : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }

  std::vector<int64_t> indices;
  Phase phase = Phase::train;
};

/// A linear model whose weights start at 0, with dropout of that probability on its rows.
std::shared_ptr<ModelBase> make_model(double dropout = 0);

/// The parameters, one after the other, in double precision.
std::vector<double> weights_of(ModelBase& model);
void set_weights(ModelBase& model, const std::vector<double>& weights);

/// How the data is.
struct DataOptions {
  int64_t samples = 10;
  bool drop_last = false;
  int64_t validation_samples = 5;           ///< 0: no validation data.
  std::string fingerprint = "tiny";         ///< The training data's.
  std::optional<int64_t> promised_samples;  ///< samples_per_epoch, where it is to be wrong.
  bool without_tokens = false;              ///< Leaves Batch::tokens at 0.
};

/// How the loss is.
struct TaskOptions {
  DataOptions data;
  std::vector<std::string> parts;          ///< Names of one or two parts; none: a plain loss.
  std::optional<int64_t> not_a_number_at;  ///< The step whose last part is NaN, with a sign.
  std::optional<int64_t> infinite_at;      ///< The step whose loss is, but not its gradient.
  std::optional<int64_t> fails_at;         ///< The step at which the loss throws.
  bool validation_fails = false;           ///< The loss of validation data throws.
  bool sample_fails = false;               ///< The sample throws, in two lines.
  bool parts_change = false;               ///< Later micro-batches name their parts otherwise.
};

/// Sample `i` counts as 1 + i % 3 tokens.
constexpr int64_t tokens_of(int64_t sample) { return 1 + sample % 3; }

/// The order of an epoch: each epoch begins one sample later than the one before.
constexpr int64_t sample_at(int64_t place, int64_t epoch, int64_t samples) {
  return (place * 7 + epoch) % samples;
}

/// Least squares on a fixed data set; the loss is a mean over tokens.
class Regression : public Task<Samples, Regressor> {
 public:
  explicit Regression(TaskOptions options = {}) : options_(std::move(options)) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override;
  Loss compute_loss(Regressor& model, const Samples& batch, const State& state) override;
  NamedValues metrics(const NamedValues& mean_losses) const override;
  std::string show_sample(Regressor& model, const State& state) override;
  void on_epoch_start(Regressor& model, const State& state) override;
  void on_step_end(Regressor& model, const State& state) override;

  /// The samples of each micro-batch, in order, by phase.
  std::vector<std::vector<int64_t>> trained;
  std::vector<std::vector<int64_t>> validated;
  std::vector<std::string> calls;      ///< Hooks and samples, in order.
  std::vector<State> states;           ///< What `compute_loss` was given.
  std::vector<bool> modes;             ///< The model's training mode in each call of it.
  std::vector<at::ScalarType> dtypes;  ///< The type of each loss.

 private:
  TaskOptions options_;
};

/// Plain gradient descent with a momentum of 0.5, which notes what it is told.
class Descent : public Optimizer {
 public:
  explicit Descent(double lr = 0.1) : lr_(lr) {}

  double base_lr() const override { return lr_; }
  void bind(std::vector<ParameterGroup> groups) override;
  void step(double lr) override;
  std::vector<ShardedTensorView> state() override;

  std::vector<double> rates;                   ///< The rate of each step.
  std::vector<std::vector<double>> gradients;  ///< By step, as weights_of has the weights.
  std::vector<at::ScalarType> dtypes;          ///< The type of each step's gradients.
  std::vector<ParameterGroup> groups;

 private:
  double lr_;
  std::vector<at::Tensor> momenta_;
};

/// A schedule that is a function.
class Schedule : public LrScheduler {
 public:
  using Function = std::function<double(int64_t step, int64_t total_steps)>;

  explicit Schedule(
      Function function = [](int64_t, int64_t) { return 1.0; }, bool needs_total = false)
      : function_(std::move(function)), needs_total_(needs_total) {}

  double factor(int64_t step, int64_t total_steps) const override {
    return function_(step, total_steps);
  }
  bool needs_total_steps() const override { return needs_total_; }

 private:
  Function function_;
  bool needs_total_;
};

/// The parts of a trainer, to look at afterwards.
struct Parts {
  std::shared_ptr<Regression> task = std::make_shared<Regression>();
  std::shared_ptr<ModelBase> model = make_model();
  std::shared_ptr<Descent> optimizer = std::make_shared<Descent>();
  std::shared_ptr<Schedule> schedule = std::make_shared<Schedule>();
};

/// The optimizer and its schedule as the parts of a step take them.
OptimizerPart optimizer_part(const Parts& parts);

/// What a trainer is built from: the parts and a resolved config with these sections beside
/// `training`.
TrainerSetup make_setup(const Parts& parts, const TrainingConfig& training,
                        const TrainerConfig& trainer = {.name = "tiny", .exp_dir = "nowhere"},
                        std::vector<config::Entry> sections = {});

}  // namespace phalanx::tiny
