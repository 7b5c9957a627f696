// SPDX-License-Identifier: Apache-2.0
// A task that owns modules: "judging" has a critic, which is a unit, a head and a teacher, which is
// not trained, beside a causal language model. "plain" is the same without them.

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/token_loss.h"
#include "trainer/api/task.h"
#include "trainer/api/unit.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_predictions.h"
#include "trainer/data/loader.h"
#include "trainer/data/token_batch.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

constexpr int64_t kSamples = 16;
constexpr int64_t kLength = 6;
constexpr int64_t kVocabulary = 16;

class Counted : public Dataset {
 public:
  int64_t size() const override { return kSamples; }
  std::string fingerprint() const override { return "counted"; }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    const at::Tensor first = at::tensor(at::ArrayRef<int64_t>(indices.data(), indices.size()));
    const at::Tensor counted = first.unsqueeze(1) * 3 + at::arange(kLength).square();
    auto batch = std::make_unique<TokenBatch>();
    batch->inputs = counted.remainder(kVocabulary);
    batch->targets = counted.add(1).remainder(kVocabulary);
    batch->samples = counted.size(0);
    batch->tokens = counted.numel();
    return batch;
  }
};

class CriticImpl : public torch::nn::Module, public Unit {
 public:
  explicit CriticImpl(int64_t vocabulary)
      : linear_(register_module("linear", torch::nn::Linear(vocabulary, 4))) {}

  at::Tensor forward(const at::Tensor& logits) { return linear_(logits).tanh(); }

 private:
  torch::nn::Linear linear_;
};
UNIT(Critic);

class LayerImpl : public torch::nn::Module, public Unit {
 public:
  explicit LayerImpl(int64_t width)
      : linear_(register_module("linear", torch::nn::Linear(width, width))),
        scale_(register_buffer("scale", at::empty({1}).uniform_(0.5, 1))) {}

  // Draws random numbers where it computes as in training.
  at::Tensor forward(const at::Tensor& tokens) {
    return at::dropout(linear_(tokens) * scale_, 0.5, is_training());
  }

 private:
  torch::nn::Linear linear_;
  at::Tensor scale_;
};
UNIT(Layer);

class TeacherImpl : public torch::nn::Module {
 public:
  explicit TeacherImpl(int64_t vocabulary)
      : layer_(register_module("layer", Layer(vocabulary))),
        out_(register_module("out", torch::nn::Linear(vocabulary, 1))) {}

  at::Tensor forward(const at::Tensor& tokens) { return out_(layer_(tokens)); }

 private:
  Layer layer_;
  torch::nn::Linear out_;
};
TORCH_MODULE(Teacher);

class Plain : public Task<TokenBatch, CausalLanguageModel> {
 public:
  using Config = config::NoFields;
  explicit Plain(Config = {}) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    return load(std::make_shared<const Counted>(), {.num_workers = 0}, request,
                phase == Phase::train);
  }

  Loss compute_loss(CausalLanguageModel& model, const TokenBatch& batch, const State&) override {
    return token_loss(model.logits(batch.inputs), batch.targets, batch.tokens);
  }
};

class Judging : public Plain {
 public:
  struct Config {
    std::optional<std::filesystem::path> teacher;
    std::optional<int64_t> fails_at;
    bool has_bad_name = false;

    static void describe(config::Schema<Config>& s) {
      s.field("teacher", &Config::teacher, "weights of the teacher").resume_may_change();
      s.field("fails_at", &Config::fails_at, "step whose loss throws").resume_may_change();
      s.field("has_bad_name", &Config::has_bad_name, "a module's name has a dot");
    }
  };

  explicit Judging(Config config) : config_(std::move(config)) {}

  std::vector<TaskModule> build_modules(ModelBase& model) override {
    const int64_t vocabulary = interface_of(model).vocabulary_size();
    critic_ = Critic(vocabulary);
    head_ = torch::nn::Linear(4, 1);
    teacher_ = Teacher(vocabulary);
    return {{.name = "critic", .module = critic_.ptr()},
            {.name = config_.has_bad_name ? "a.head" : "head", .module = head_.ptr()},
            {.name = "teacher",
             .module = teacher_.ptr(),
             .is_trained = false,
             .load_from = config_.teacher}};
  }

  Loss compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                    const State& state) override {
    if (state.phase == Phase::train && config_.fails_at == state.step) {
      throw std::runtime_error("the task failed");
    }
    const at::Tensor logits = model.logits(batch.inputs);
    const at::Tensor judged = judge(logits);
    at::Tensor wanted;
    {
      const at::NoGradGuard no_grad;
      wanted = teacher_(at::one_hot(batch.inputs, logits.size(-1)).to(logits.dtype()));
    }
    return Loss::Parts{{"words", token_loss(logits, batch.targets, batch.tokens)},
                       {"judged", (judged - wanted).square().mean()}};
  }

  std::unique_ptr<PredictionSource> prediction_data(const PredictionInput&) override {
    return predictions_of(std::make_shared<Counted>());
  }

  Predictions predict(CausalLanguageModel& model, const TokenBatch& batch, const State&) override {
    const at::Tensor values = judge(model.logits(batch.inputs)).sum({1, 2});
    Predictions predictions;
    for (int64_t row = 0; row < values.size(0); ++row) {
      predictions.push_back({{"value", values[row].item<double>()}});
    }
    return predictions;
  }

 private:
  at::Tensor judge(const at::Tensor& logits) { return head_(critic_(logits)); }

  Config config_;
  Critic critic_{nullptr};
  torch::nn::Linear head_{nullptr};
  Teacher teacher_{nullptr};
};

REGISTER_TASK("plain", Plain);
REGISTER_TASK("judging", Judging);

}  // namespace
}  // namespace phalanx
