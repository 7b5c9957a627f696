// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/averages_mixin.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <string>
#include <unordered_map>

#include "trainer/api/parameters.h"
#include "trainer/averages/weight_averages.h"
#include "trainer/checkpoint/load/averaged.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/never_acts.h"
#include "trainer/mixins/undone_step.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

// The trained parameters, and the buffers that can be averaged if they are to be. A parameter that
// is frozen is its own average.
std::vector<ShardedTensorView> averaged_views(const TrainerBase& trainer, bool buffers) {
  std::unordered_map<std::string, bool> is_trained;
  for (const NamedParameter& parameter : named_parameters(trainer.model())) {
    is_trained.emplace(parameter.name, parameter.tensor.requires_grad());
  }
  std::vector<ShardedTensorView> averaged;
  for (ShardedTensorView& view : trainer.task_model().views()) {
    const auto parameter = is_trained.find(view.name);
    const bool counts = parameter == is_trained.end() ? buffers && c10::isFloatingType(view.dtype)
                                                      : parameter->second;
    if (counts) averaged.push_back(std::move(view));
  }
  return averaged;
}

}  // namespace

void AveragesConfig::describe(config::Schema<AveragesConfig>& s) {
  s.field("method", &AveragesConfig::method,
          "ema: exponential, each time by 1 - decay towards the weights; swa: all weights taken "
          "count alike; none: nothing is averaged")
      .choices({{"none", Averages::none}, {"ema", Averages::ema}, {"swa", Averages::swa}})
      .resume_may_change();
  s.field("decay", &AveragesConfig::decay, "ema: what stays of the average each time")
      .at_least(0)
      .at_most(1)
      .resume_may_change();
  s.field("start", &AveragesConfig::start,
          "weights are taken from so many steps on, with every_n_epochs from so many epochs on")
      .at_least(0)
      .resume_may_change();
  s.field("every_n_steps", &AveragesConfig::every_n_steps,
          "weights are taken after every n-th step from `start` on; null: after each, unless "
          "every_n_epochs is set")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("every_n_epochs", &AveragesConfig::every_n_epochs,
          "weights are taken after every n-th epoch from `start` on")
      .unit("epochs")
      .at_least(1)
      .resume_may_change();
  s.field("buffers", &AveragesConfig::buffers,
          "average floating-point buffers (running statistics) too; false: a model with the "
          "average has the buffers of the weights");
  s.field("validate", &AveragesConfig::validate,
          "validations measure the average, once there is one, in place of the weights")
      .resume_may_change();
  s.check([](const AveragesConfig& c) -> std::optional<std::string> {
    if (!c.every_n_steps || !c.every_n_epochs) return std::nullopt;
    return "every_n_steps and every_n_epochs are both set: set one of them to null";
  });
  s.ineffective({"decay"}, "method is not ema",
                [](const AveragesConfig& c) { return c.method != Averages::ema; });
  s.ineffective({"start", "every_n_steps", "every_n_epochs", "buffers", "validate"},
                "method is none",
                [](const AveragesConfig& c) { return c.method == Averages::none; });
}

bool AveragesConfig::due(const State& state, const StepResult& result) const {
  if (every_n_epochs && !result.ends_epoch) return false;
  const int64_t done = every_n_epochs ? state.epoch + 1 : state.step;
  const int64_t n = every_n_epochs.value_or(every_n_steps.value_or(1));
  return done >= start && (done - start) % n == 0;
}

std::string AveragesConfig::never_due(int64_t total_steps, int64_t steps_per_epoch) const {
  const int64_t n = every_n_epochs.value_or(every_n_steps.value_or(1));
  const int64_t first = (start > 0 ? start : n) * (every_n_epochs ? steps_per_epoch : 1);
  if (first <= total_steps) return "";
  const char* const every = every_n_epochs ? "every_n_epochs" : "every_n_steps";
  return fmt::format(
      "the run has {} step{}, and the first weights would be averaged after step {}: it keeps no "
      "average; lower averages.{}",
      total_steps, total_steps == 1 ? "" : "s", first, start > 0 ? "start" : every);
}

AveragesMixinBase::AveragesMixinBase(AveragesConfig config) : config_(config) {}
AveragesMixinBase::~AveragesMixinBase() = default;

void AveragesMixinBase::fill_plan(const AveragesConfig& config, RunPlan& plan) {
  if (config.method != Averages::none) ++plan.weight_copies;
}

void AveragesMixinBase::set_up(TrainerBase& trainer) {
  if (config_.method == Averages::none || trainer.purpose() != Purpose::training) return;
  averages_ = std::make_unique<WeightAverages>(
      config_.method == Averages::ema ? AverageMethod::exponential : AverageMethod::equal,
      config_.decay, averaged_views(trainer, config_.buffers));
  trainer.keep_state(std::string(kAveragesPart), *averages_);
  if (!config_.validate) return;
  trainer.validate_with([this, &trainer] {
    averages_->exchange();
    // Each rank has its own average of them, and gets its own buffers back.
    if (config_.buffers) trainer.task_model().buffers_changed();
  });
}

// Before hours of training, not after them.
void AveragesMixinBase::warn(const TrainerBase& trainer) const {
  const auto steps = trainer.total_steps();
  const bool may_warn = averages_ && trainer.ranks().is_first() && !trainer.finished();
  if (!may_warn || !steps || averages_->updates() > 0) return;
  const std::string never = config_.never_due(*steps, trainer.steps_per_epoch());
  if (never.empty()) return;
  Console::standard().line(
      "warning: " + never +
      place_of(trainer.resolved_config(),
               {config_.start > 0 ? "averages.start" : "averages.every_n_steps",
                "averages.every_n_epochs"}));
}

void AveragesMixinBase::update_if_due(const State& state, const StepResult& result) {
  if (averages_ && !result.is_skipped && config_.due(state, result)) averages_->update();
}

// An epoch whose last step is undone ends with the weights that the run has gone back to; those of
// a step by itself were taken with that step.
void AveragesMixinBase::update_if_epoch_ends(const TrainerBase& trainer) {
  if (config_.every_n_epochs) update_if_due(trainer.state(), end_of_undone_step(trainer));
}

void AveragesMixinBase::describe_averages(std::vector<ScreenLine>& lines) const {
  if (!averages_) return;
  const char* const unit = config_.every_n_epochs ? "epoch" : "step";
  const int64_t n = config_.every_n_epochs.value_or(config_.every_n_steps.value_or(1));
  const std::string method =
      config_.method == Averages::ema ? fmt::format("ema, decay {:g}", config_.decay) : "swa";
  const std::string place = n == 1 ? fmt::format("each {}", unit) : fmt::format("{} {}s", n, unit);
  const std::string from =
      config_.start > 0 ? fmt::format(" from {} {} on", unit, config_.start) : "";
  lines.push_back(
      {"averages",
       fmt::format("{}; after {}{}{}{}", method, place, from,
                   averages_->updates() > 0 ? fmt::format("; {} taken", averages_->updates()) : "",
                   config_.validate ? "; validated" : "")});
}

}  // namespace phalanx
