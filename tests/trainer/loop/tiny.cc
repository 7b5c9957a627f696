// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/loop/tiny.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <stdexcept>
#include <utility>

#include "trainer/api/model.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::tiny {
namespace {

class Linear : public Model<Regressor> {
 public:
  explicit Linear(double dropout)
      : dropout_(dropout),
        weight_(register_parameter("weight", at::zeros({1, 3}))),
        bias_(register_parameter("bias", at::zeros({1}))) {}

  at::Tensor predict(const at::Tensor& rows) override {
    return at::linear(at::dropout(rows, dropout_, is_training()), weight_, bias_).flatten();
  }
  at::ScalarType dtype() const override { return weight_.scalar_type(); }
  bool in_training() const override { return is_training(); }

 private:
  double dropout_;
  at::Tensor weight_;
  at::Tensor bias_;
};

class Source : public BatchSource {
 public:
  Source(DataOptions options, Phase phase, const BatchRequest& request)
      : options_(std::move(options)),
        phase_(phase),
        batch_size_(request.batch_size),
        samples_(phase == Phase::train ? options_.samples : options_.validation_samples) {
    if (options_.drop_last && phase == Phase::train) dealt_ = samples_ / batch_size_ * batch_size_;
  }

  int64_t samples_per_epoch() const override { return options_.promised_samples.value_or(end()); }
  int64_t batches_per_epoch() const override { return (end() + batch_size_ - 1) / batch_size_; }
  std::string fingerprint() const override { return options_.fingerprint; }

  void start_epoch(int64_t epoch, int64_t consumed) override {
    epoch_ = epoch;
    place_ = consumed;
  }

  std::unique_ptr<Batch> next() override {
    if (place_ >= end()) return nullptr;
    auto batch = std::make_unique<Samples>();
    batch->phase = phase_;
    for (; place_ < end() && batch->samples < batch_size_; ++batch->samples, ++place_) {
      batch->indices.push_back(sample_at(place_, epoch_, samples_));
      if (!options_.without_tokens) batch->tokens += tokens_of(batch->indices.back());
    }
    return batch;
  }

 private:
  int64_t end() const { return dealt_.value_or(samples_); }

  DataOptions options_;
  Phase phase_;
  int64_t batch_size_;
  int64_t samples_;
  std::optional<int64_t> dealt_;
  int64_t epoch_ = 0;
  int64_t place_ = 0;
};

// A third of an integer has no short form in any precision: differences in rounding show.
at::Tensor rows_of(const std::vector<int64_t>& indices, at::ScalarType dtype) {
  const at::Tensor i = at::tensor(indices, at::kLong).to(at::kDouble);
  return (at::stack({i.sin(), (i * 2 + 1) / 3, (i + 1).reciprocal()}, 1)).to(dtype);
}

at::Tensor targets_of(const std::vector<int64_t>& indices, at::ScalarType dtype) {
  return (at::tensor(indices, at::kLong).to(at::kDouble) / 7).cos().to(dtype);
}

at::Tensor shares_of(const Samples& batch, at::ScalarType dtype) {
  std::vector<double> shares;
  int64_t tokens = 0;
  for (const int64_t i : batch.indices) tokens += tokens_of(i);
  for (const int64_t i : batch.indices) {
    shares.push_back(static_cast<double>(tokens_of(i)) / static_cast<double>(tokens));
  }
  return at::tensor(shares, at::kDouble).to(dtype);
}

}  // namespace

std::shared_ptr<ModelBase> make_model(double dropout) { return std::make_shared<Linear>(dropout); }

std::vector<double> weights_of(ModelBase& model) {
  std::vector<double> weights;
  for (const auto& parameter : named_parameters(model)) {
    const at::Tensor flat = parameter.tensor.detach().to(at::kDouble).flatten();
    weights.insert(weights.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  }
  return weights;
}

void set_weights(ModelBase& model, const std::vector<double>& weights) {
  const c10::NoGradGuard no_grad;
  size_t place = 0;
  for (auto& parameter : named_parameters(model)) {
    at::Tensor flat = parameter.tensor.view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) flat[i].fill_(weights.at(place++));
  }
}

std::unique_ptr<BatchSource> Regression::build_data(Phase phase, const BatchRequest& request) {
  if (phase == Phase::validate && options_.data.validation_samples == 0) return nullptr;
  return std::make_unique<Source>(options_.data, phase, request);
}

Loss Regression::compute_loss(Regressor& model, const Samples& batch, const State& state) {
  const bool training = batch.phase == Phase::train;
  (training ? trained : validated).push_back(batch.indices);
  states.push_back(state);
  modes.push_back(model.in_training());
  if (training && options_.fails_at == state.step) throw std::runtime_error("the task failed");
  if (!training && options_.validation_fails) throw std::runtime_error("the validation failed");

  const at::ScalarType dtype = model.dtype();
  const at::Tensor prediction = model.predict(rows_of(batch.indices, dtype));
  const at::Tensor shares = shares_of(batch, dtype);
  const auto mean = [&](const at::Tensor& values) { return (values * shares).sum(); };
  at::Tensor error = mean((prediction - targets_of(batch.indices, dtype)).square());
  if (training && options_.not_a_number_at == state.step) {
    error = error * -std::numeric_limits<double>::quiet_NaN();
  }
  if (training && options_.infinite_at == state.step) {
    error = error + std::numeric_limits<double>::infinity();
  }
  dtypes.push_back(error.scalar_type());
  if (options_.parts.empty()) return error;
  Loss::Parts parts;
  if (options_.parts.size() > 1) {
    parts.emplace_back(options_.parts.front(), mean(prediction.square()) * 0.25);
  }
  const bool renamed = options_.parts_change && trained.size() > 1;
  parts.emplace_back(options_.parts.back() + (renamed ? "_renamed" : ""), error);
  return parts;
}

NamedValues Regression::metrics(const NamedValues& mean_losses) const {
  return {{"twice", 2 * value_of(mean_losses, "loss", -1)}};
}

std::string Regression::show_sample(Regressor& model, const State&) {
  calls.emplace_back("sample");
  modes.push_back(model.in_training());
  if (options_.sample_fails) throw std::runtime_error("nothing can be drawn\nin detail");
  return "drawn " + std::to_string(at::rand({}).item<double>());
}

void Regression::on_epoch_start(Regressor&, const State& state) {
  calls.push_back("epoch " + std::to_string(state.epoch) + " starts");
}

void Regression::on_step_end(Regressor&, const State& state) {
  calls.push_back("step " + std::to_string(state.step) + " ended");
}

void Descent::bind(std::vector<ParameterGroup> bound) {
  groups = std::move(bound);
  momenta_.clear();
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) {
      momenta_.push_back(at::zeros_like(parameter.tensor.detach()));
    }
  }
}

void Descent::step(double lr) {
  const c10::NoGradGuard no_grad;
  rates.push_back(lr);
  std::vector<double> seen;
  size_t place = 0;
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) {
      const at::Tensor& gradient = parameter.tensor.grad();
      dtypes.push_back(gradient.scalar_type());
      const at::Tensor flat = gradient.to(at::kDouble).flatten();
      seen.insert(seen.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
      at::Tensor& momentum = momenta_[place++];
      momentum.mul_(0.5).add_(gradient);
      at::Tensor weight = parameter.tensor;
      weight.sub_(momentum, lr);
    }
  }
  gradients.push_back(std::move(seen));
}

std::vector<ShardedTensorView> Descent::state() {
  std::vector<ShardedTensorView> views;
  size_t place = 0;
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) {
      views.push_back(state_view(parameter, "momentum", momenta_[place++]));
    }
  }
  return views;
}

OptimizerPart optimizer_part(const Parts& parts) {
  return {.optimizer = parts.optimizer, .lr_scheduler = parts.schedule};
}

TrainerSetup make_setup(const Parts& parts, const TrainingConfig& training,
                        const TrainerConfig& trainer, std::vector<config::Entry> sections) {
  config::Node resolved = config::write(trainer);
  resolved.set("training", config::write(training));
  for (auto& section : sections) resolved.set(section.key, std::move(section.value));
  for (const char* name : {"task", "model", "optimizer", "lr_scheduler"}) {
    config::Node chosen = config::Node::map();
    chosen.set("name", config::Node::string("tiny"));
    resolved.set(name, std::move(chosen));
  }
  return {.config = std::make_shared<const config::Node>(std::move(resolved)),
          .components = {.task = parts.task,
                         .model = parts.model,
                         .optimizer = parts.optimizer,
                         .lr_scheduler = parts.schedule}};
}

}  // namespace phalanx::tiny
