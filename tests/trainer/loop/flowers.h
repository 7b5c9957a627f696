// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/node.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/loop/training_config.h"

/// A task and a model as users write them, of LibTorch's own modules, whose data and code may fail
/// in one way each: what the tests of messages about failing steps train.
namespace phalanx::flowers {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A line of the file: four sizes, the number of a colour, and a kind out of three.
struct Flower {
  std::vector<double> sizes = {1, -0.5, 0.25, 2};
  int64_t colour = 0;
  int64_t kind = 0;
  double weight = 1;
};

struct FlowerBatch : Batch {
  std::vector<at::Tensor*> tensors() override { return {&sizes, &colours, &kinds, &weights}; }
  std::vector<std::string_view> tensor_names() const override {
    return {"sizes", "colours", "kinds", "weights"};
  }

  at::Tensor sizes;    ///< float32 [samples, 4].
  at::Tensor colours;  ///< int64 [samples].
  at::Tensor kinds;    ///< int64 [samples].
  at::Tensor weights;  ///< float32 [samples], of the loss.
};

/// What fails besides the data.
struct Faults {
  bool has_doubles = false;            ///< Sizes are in double precision.
  bool lacks_kinds = false;            ///< A batch has one kind less than samples.
  bool block_throws = false;           ///< In its own code.
  bool takes_logarithms = false;       ///< The logarithms of negative numbers.
  bool changes_what_is_saved = false;  ///< In place, what the backward pass needs.
  bool users_mistake = false;          ///< The loss throws UserError.
};

/// What gives a model's scores of the kinds.
class Classifier {
 public:
  static constexpr std::string_view kInterface = "Classifier";

  virtual ~Classifier() = default;

  /// [samples, 3].
  virtual at::Tensor scores(const FlowerBatch& batch) = 0;
};

/// The lines of 'flowers.csv', whose first is a header.
std::shared_ptr<Dataset> file_of(std::vector<Flower> flowers, const Faults& faults);

/// Eight of them.
std::vector<Flower> eight_flowers();

/// A network: first, colours, block (with block.inner), head; it has a buffer that counts its
/// forward passes.
std::shared_ptr<ModelBase> network(const Faults& faults);
/// What the buffer has counted.
int64_t passes_of(ModelBase& model);

/// The data in its own order; predictions name the likeliest kind.
class Classification : public Task<FlowerBatch, Classifier> {
 public:
  Classification(std::shared_ptr<Dataset> training, std::shared_ptr<Dataset> validation,
                 const Faults& faults)
      : training_(std::move(training)), validation_(std::move(validation)), faults_(faults) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override;
  Loss compute_loss(Classifier& model, const FlowerBatch& batch, const State& state) override;
  std::unique_ptr<PredictionSource> prediction_data(const PredictionInput& input) override;
  Predictions predict(Classifier& model, const FlowerBatch& batch, const State& state) override;

  int64_t losses = 0;                      ///< Computed so far.
  std::function<void()> before_each_loss;  ///< Optional.

 private:
  std::shared_ptr<Dataset> training_;
  std::shared_ptr<Dataset> validation_;
  Faults faults_;
};

/// The parts of a run, to look at afterwards.
struct Parts {
  std::shared_ptr<Classification> task;
  std::shared_ptr<ModelBase> model;
};

Parts run_of(const std::vector<Flower>& training, const Faults& faults = {},
             const std::vector<Flower>& validation = eight_flowers());

/// What a trainer is built of, with a section `spy`.
TrainerSetup setup_of(const Parts& run, const TrainingConfig& training,
                      std::vector<config::Entry> sections = {});

}  // namespace phalanx::flowers
