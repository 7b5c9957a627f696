// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/schedule_notes.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/optimizer.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

constexpr const char* kHorizon = "lr_scheduler.decay_steps";

// "1 step", "12 steps".
std::string steps_text(int64_t steps) {
  return fmt::format("{} {}", steps, steps == 1 ? "step" : "steps");
}

// Where a config sets a warm-up; nothing for a schedule without one.
struct Warmup {
  std::string field;
  int64_t steps = 0;
};

std::optional<Warmup> warmup_of(const config::Node& section, const std::string& path,
                                int64_t total_steps) {
  const config::Node* steps = section.find("warmup_steps");
  if (steps != nullptr && steps->type == config::ScalarType::integer) {
    return Warmup{.field = path + ".warmup_steps", .steps = std::stoll(steps->text)};
  }
  const config::Node* parts = section.find("schedules");
  if (parts == nullptr || !parts->is_list() || parts->items.empty()) return std::nullopt;
  // Behind its milestone another part has the learning rate.
  const config::Node* milestones = section.find("milestones");
  if (milestones != nullptr && milestones->is_list() && !milestones->items.empty() &&
      std::stoll(milestones->items.front().text) < total_steps) {
    return std::nullopt;
  }
  return warmup_of(parts->items.front(), path + ".schedules[0]", total_steps);
}

// A schedule has no state: this one has the values of the trainer's own. None where a program has
// built its trainer without a config of it.
std::shared_ptr<const LrScheduler> schedule_of(const config::Node& resolved) {
  if (chosen_section<LrScheduler>(resolved) == nullptr) return nullptr;
  const auto& classes = Registry<LrScheduler>::instance().table();
  if (!classes.contains(chosen_name<LrScheduler>(resolved))) return nullptr;
  return make_chosen<LrScheduler>(resolved);
}

std::optional<int64_t> total_steps(const TrainerBase& trainer, const TrainingConfig& training) {
  const int64_t of_epoch = trainer.training_data().batches_per_epoch();
  const int64_t accumulation = trainer.global_batch_size() / trainer.training().batch_size /
                               trainer.data_ranks().world_size();
  return training.total_steps({.samples = trainer.training_data().samples_per_epoch(),
                               .steps = (of_epoch + accumulation - 1) / accumulation},
                              trainer.global_batch_size());
}

}  // namespace

std::string long_warmup(const config::Node& resolved, double base_lr, int64_t total_steps) {
  const auto schedule = schedule_of(resolved);
  if (!schedule) return "";
  const auto warmup =
      warmup_of(*chosen_section<LrScheduler>(resolved), "lr_scheduler", total_steps);
  if (!warmup || warmup->steps <= total_steps) return "";
  return fmt::format(
      "the run has {}, and the warm-up {}: the learning rate ends at {:.3g} and never reaches "
      "optimizer.lr, {:.3g}; lower {}",
      steps_text(total_steps), warmup->steps, base_lr * schedule->factor(total_steps, total_steps),
      base_lr, warmup->field);
}

std::string long_warmup(const TrainerBase& trainer) {
  const auto steps = trainer.total_steps();
  if (!steps) return "";
  return long_warmup(trainer.resolved_config(), trainer.optimizer().base_lr(), *steps);
}

std::string moved_horizon(const config::Node& resolved, double base_lr,
                          const ChangedLength& length) {
  const auto schedule = schedule_of(resolved);
  if (!schedule || !schedule->needs_total_steps()) return "";
  const auto& [earlier, total, step] = length;
  if (step >= total) return "";
  const double next = schedule->factor(step + 1, total);
  if (earlier == total || next == schedule->factor(step + 1, earlier)) return "";
  // A user's own schedule, and a chain, have no such field.
  const bool has_field = resolved.find_path(kHorizon) != nullptr;
  return fmt::format(
      "the run has {} now, and had {}; its schedule follows: the learning rate was {:.3g} in step "
      "{} and is {:.3g} in step {}{}",
      steps_text(total), earlier, base_lr * schedule->factor(step, earlier), step, base_lr * next,
      step + 1,
      has_field ? fmt::format("; {}={} keeps the earlier schedule", kHorizon, earlier) : "");
}

std::string moved_horizon(const TrainerBase& trainer, const config::Node& earlier) {
  const auto total = trainer.total_steps();
  const auto former = total_steps(trainer, with_limits_of(trainer.resolved_config(), earlier));
  if (!former || !total) return "";
  return moved_horizon(
      trainer.resolved_config(), trainer.optimizer().base_lr(),
      {.earlier_steps = *former, .total_steps = *total, .step = trainer.state().step});
}

TrainingConfig with_limits_of(const config::Node& resolved, const config::Node& earlier) {
  config::Node section = *resolved.find("training");
  for (const char* name : {"max_steps", "max_epochs", "max_samples"}) {
    const config::Node* limit = earlier.find_path(std::string("training.") + name);
    section.set(name, limit == nullptr ? config::Node::null() : *limit);
  }
  return config::read<TrainingConfig>(section);
}

}  // namespace phalanx
