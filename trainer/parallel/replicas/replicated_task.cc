// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/replicated_task.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "trainer/api/task.h"
#include "trainer/parallel/replicas/gathered_loss.h"
#include "trainer/parallel/replicas/own_random_numbers.h"
#include "trainer/parallel/replicas/replicas.h"
#include "trainer/parallel/replicas/scattered_batch.h"
#include "trainer/parallel/replicas/scattered_source.h"
#include "trainer/parallel/replicas/usual_step.h"

namespace phalanx {
namespace {

std::vector<torch::nn::Module*> modules_of(const ReplicatedModel& model) {
  std::vector<torch::nn::Module*> modules;
  for (const auto& replica : model.replicas) modules.push_back(&replica->module());
  return modules;
}

class ReplicatedTask final : public AnyTask {
 public:
  ReplicatedTask(std::shared_ptr<AnyTask> task, ReplicatedModel model, std::string name)
      : task_(std::move(task)), model_(std::move(model)), name_(std::move(name)) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    if (phase != Phase::train) return task_->build_data(phase, request);
    // Its batches say which samples they have, and only parts go to a device.
    BatchRequest on_host = request;
    on_host.gpu.reset();
    auto source = task_->build_data(phase, on_host);
    if (!source) return nullptr;
    return std::make_unique<ScatteredSource>(
        std::move(source), static_cast<int64_t>(model_.devices.size()), request.gpu);
  }

  Loss loss(ModelBase& model, const Batch& batch, const State& state) override {
    const auto* const scattered = dynamic_cast<const ScatteredBatch*>(&batch);
    return scattered == nullptr ? task_->loss(model, batch, state) : gather(*scattered, state);
  }

  void run_step(TrainingStep& step, ModelBase& model) override {
    UsualStep usual(step, name_);
    task_->run_step(usual, model);
  }

  void check_model(ModelBase& model) override {
    task_->join(ranks());
    task_->check_model(model);
  }

  bool takes_files() const override { return task_->takes_files(); }
  std::vector<TaskModule> build_modules(ModelBase& model) override {
    return task_->build_modules(model);
  }
  NamedValues metrics(const NamedValues& mean_losses) const override {
    return task_->metrics(mean_losses);
  }
  void declare_metrics(MetricSet& set) const override { task_->declare_metrics(set); }
  std::string sample(ModelBase& model, const State& state) override {
    return task_->sample(model, state);
  }
  std::unique_ptr<PredictionSource> prediction_data(const PredictionInput& input) override {
    return task_->prediction_data(input);
  }
  Predictions predictions(ModelBase& model, const Batch& batch, const State& state) override {
    return task_->predictions(model, batch, state);
  }
  std::vector<NamedValues> text_scores(ModelBase& model, const Batch& batch,
                                       const State& state) override {
    return task_->text_scores(model, batch, state);
  }
  TaskText text() const override { return task_->text(); }
  Attachments attachments() const override { return task_->attachments(); }
  std::string held_back() const override { return task_->held_back(); }
  Stateful* kept_state() override { return task_->kept_state(); }
  void epoch_starts(ModelBase& model, const State& state) override {
    task_->epoch_starts(model, state);
  }
  void step_ended(ModelBase& model, const State& state) override {
    task_->step_ended(model, state);
  }

 private:
  Loss gather(const ScatteredBatch& batch, const State& state) {
    // Not before the model is where it computes, and has the modules that mixins give it.
    if (!replicas_) {
      replicas_.emplace(model_.original->module(), modules_of(model_), model_.devices);
    }
    const auto parts = batch.parts();
    std::vector<std::optional<Loss>> losses(parts.size());
    replicas_->run(parts.size(), [&](size_t i) {
      move_to(*parts[i], model_.devices[i]);
      losses[i].emplace(task_->loss(*model_.replicas[i], *parts[i], state));
    });
    return gathered(std::move(losses), parts, model_.devices.front());
  }

  std::shared_ptr<AnyTask> task_;
  ReplicatedModel model_;
  std::string name_;
  std::optional<Replicas> replicas_;
};

}  // namespace

std::shared_ptr<AnyTask> replicated(std::shared_ptr<AnyTask> task, ReplicatedModel model,
                                    std::string name) {
  OwnRandomNumbers::prepare();  // no thread reads data yet
  return std::make_shared<ReplicatedTask>(std::move(task), std::move(model), std::move(name));
}

}  // namespace phalanx
