// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/loop/flowers.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>
#include <utility>

#include "tests/trainer/loop/tiny.h"
#include "trainer/api/broken_sample.h"
#include "trainer/api/model.h"
#include "trainer/api/modules.h"
#include "trainer/api/unit.h"
#include "trainer/base/user_error.h"
#include "trainer/data/dataset_predictions.h"
#include "trainer/data/loader.h"

namespace phalanx::flowers {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kColours = 5;
constexpr int64_t kKinds = 3;

class FlowerFile : public Dataset {
 public:
  FlowerFile(std::vector<Flower> flowers, const Faults& faults)
      : flowers_(std::move(flowers)), faults_(faults) {}

  int64_t size() const override { return static_cast<int64_t>(flowers_.size()); }
  std::string fingerprint() const override { return "flowers"; }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    throw BrokenSampleError(
        {.source = "flowers.csv",
         .kind = kind,
         .message = fmt::format("'flowers.csv', line {}: {}", index + 2, problem)});
  }

  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    std::vector<at::Tensor> sizes;
    std::vector<int64_t> colours;
    std::vector<int64_t> kinds;
    std::vector<double> weights;
    for (const int64_t index : indices) {
      const Flower& flower = flowers_.at(static_cast<size_t>(index));
      sizes.push_back(at::tensor(flower.sizes, at::kDouble));
      colours.push_back(flower.colour);
      kinds.push_back(flower.kind);
      weights.push_back(flower.weight);
    }
    if (faults_.lacks_kinds) kinds.pop_back();
    auto batch = std::make_unique<FlowerBatch>();
    batch->sizes = at::stack(sizes).to(faults_.has_doubles ? at::kDouble : at::kFloat);
    batch->colours = at::tensor(colours, at::kLong);
    batch->kinds = at::tensor(kinds, at::kLong);
    batch->weights = at::tensor(weights, at::kDouble).to(at::kFloat);
    batch->samples = batch->tokens = static_cast<int64_t>(indices.size());
    return batch;
  }

 private:
  std::vector<Flower> flowers_;
  Faults faults_;
};

class BlockImpl : public torch::nn::Module, public Unit {
 public:
  explicit BlockImpl(bool throws)
      : throws_(throws), inner_(register_module("inner", torch::nn::Linear(kWidth, kWidth))) {}

  at::Tensor forward(const at::Tensor& states) {
    if (throws_) throw std::runtime_error("the block cannot do this");
    return inner_(states);
  }

 private:
  bool throws_;
  torch::nn::Linear inner_;
};
UNIT(Block);

class Network : public Model<Classifier> {
 public:
  explicit Network(const Faults& faults)
      : faults_(faults),
        first_(register_module("first", torch::nn::Linear(4, kWidth))),
        colours_(register_module("colours", torch::nn::Embedding(kColours, kWidth))),
        block_(register_module("block", Block(faults.block_throws))),
        head_(register_module("head", torch::nn::Linear(kWidth, kKinds))),
        passes_(register_buffer("passes", at::zeros({1}, at::kLong))) {}

  at::Tensor scores(const FlowerBatch& batch) override {
    passes_.add_(1);
    at::Tensor states = first_(batch.sizes) + colours_(batch.colours);
    states = block_(states);
    if (faults_.takes_logarithms) states = states.abs().neg().log();
    if (faults_.changes_what_is_saved) {
      const at::Tensor saved = states.exp();
      states = saved * 2;
      saved.add_(1);
    }
    return head_(states);
  }

 private:
  Faults faults_;
  torch::nn::Linear first_;
  torch::nn::Embedding colours_;
  Block block_;
  torch::nn::Linear head_;
  at::Tensor passes_;
};

}  // namespace

std::shared_ptr<Dataset> file_of(std::vector<Flower> flowers, const Faults& faults) {
  return std::make_shared<FlowerFile>(std::move(flowers), faults);
}

std::vector<Flower> eight_flowers() {
  std::vector<Flower> flowers(8);
  for (size_t i = 0; i < flowers.size(); ++i) {
    flowers[i].kind = static_cast<int64_t>(i) % kKinds;
    flowers[i].colour = static_cast<int64_t>(i) % kColours;
  }
  return flowers;
}

std::shared_ptr<ModelBase> network(const Faults& faults) {
  return std::make_shared<Network>(faults);
}

int64_t passes_of(ModelBase& model) {
  return modules::buffers(model.module()).at(0).item<int64_t>();
}

std::unique_ptr<BatchSource> Classification::build_data(Phase phase, const BatchRequest& request) {
  const LoaderConfig config{.shuffle = false, .num_workers = 0};
  const bool training = phase == Phase::train;
  return load(training ? training_ : validation_, config, request, training);
}

Loss Classification::compute_loss(Classifier& model, const FlowerBatch& batch, const State&) {
  ++losses;
  if (before_each_loss) before_each_loss();
  if (faults_.users_mistake) throw UserError("the user's mistake");
  const at::Tensor each =
      at::cross_entropy_loss(model.scores(batch), batch.kinds, {}, at::Reduction::None);
  return (each * batch.weights).mean();
}

std::unique_ptr<PredictionSource> Classification::prediction_data(const PredictionInput&) {
  return predictions_of(training_);
}

Predictions Classification::predict(Classifier& model, const FlowerBatch& batch, const State&) {
  const at::Tensor kinds = model.scores(batch).argmax(1);
  Predictions predictions;
  for (int64_t row = 0; row < kinds.size(0); ++row) {
    predictions.push_back({{"kind", kinds[row].item<int64_t>()}});
  }
  return predictions;
}

Parts run_of(const std::vector<Flower>& training, const Faults& faults,
             const std::vector<Flower>& validation) {
  return {.task = std::make_shared<Classification>(file_of(training, faults),
                                                   file_of(validation, faults), faults),
          .model = network(faults)};
}

TrainerSetup setup_of(const Parts& run, const TrainingConfig& training,
                      std::vector<config::Entry> sections) {
  sections.push_back({"spy", {}, config::Node::map()});
  TrainerSetup setup =
      tiny::make_setup({}, training, {.name = "tiny", .exp_dir = "nowhere"}, std::move(sections));
  setup.components.task = run.task;
  setup.components.model = run.model;
  return setup;
}

}  // namespace phalanx::flowers
