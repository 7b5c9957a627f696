// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/schedule_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/optimizer.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

// "1 step", "12 epochs".
std::string counted(int64_t number, const std::string& unit) {
  return fmt::format("{} {}{}", number, unit, number == 1 ? "" : "s");
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
std::shared_ptr<const LrScheduler> schedule_of(const config::Node& resolved,
                                               const RateFields& fields) {
  const config::Node* section = resolved.find_path(fields.schedule);
  if (section == nullptr) return nullptr;
  const config::Node* name = section->find("name");
  const auto& classes = Registry<LrScheduler>::instance();
  if (name == nullptr || !classes.table().contains(name->text)) return nullptr;
  return classes.at(name->text).make(*section);
}

std::optional<int64_t> total_steps(const TrainerBase& trainer, const TrainingConfig& training) {
  const int64_t of_epoch = trainer.training_data().batches_per_epoch();
  const int64_t accumulation =
      trainer.global_batch_size() / trainer.training().batch_size / trainer.shares();
  return training.total_steps({.samples = trainer.training_data().samples_per_epoch(),
                               .steps = (of_epoch + accumulation - 1) / accumulation},
                              trainer.global_batch_size());
}

bool counts_epochs(const TrainerBase& trainer) {
  return trainer.training().step_lr_interval == LrInterval::epoch;
}

// So many steps in what the schedules count.
int64_t length_of(int64_t steps, const TrainerBase& trainer) {
  return counts_epochs(trainer) ? trainer.epochs_of(steps) : steps;
}

RateFields fields_of(const auto& part, const TrainerBase& trainer) {
  return {.optimizer = part.name().empty() ? "optimizer" : "optimizers." + part.name(),
          .schedule = part.schedule_field,
          .unit = counts_epochs(trainer) ? "epoch" : "step"};
}

// Where a config has its optimizers: one, or several by names of the task's, each perhaps with a
// schedule of its own.
std::vector<RateFields> rate_fields_of(const config::Node& resolved) {
  const config::Node* named = resolved.find("optimizers");
  if (named == nullptr || !named->is_map() || named->entries.empty()) return {{}};
  std::vector<RateFields> fields;
  for (const config::Entry& entry : named->entries) {
    RateFields of_entry{.optimizer = config::join_path("optimizers", entry.key)};
    const std::string own = of_entry.optimizer + ".lr_scheduler";
    const config::Node* schedule = resolved.find_path(own);
    if (schedule != nullptr && schedule->is_map()) of_entry.schedule = own;
    fields.push_back(std::move(of_entry));
  }
  return fields;
}

// Those of the run, where neither they nor its schedules need data to tell.
std::optional<int64_t> steps_without_data(const config::Node& resolved) {
  const TrainingConfig training = training_config(resolved);
  const bool needs_data =
      training.max_epochs || training.max_samples || training.step_lr_interval == LrInterval::epoch;
  return needs_data ? std::nullopt : training.max_steps;
}

bool is_same_at(const config::Node& one, const config::Node& other, const std::string& path) {
  const config::Node* a = one.find_path(path);
  const config::Node* b = other.find_path(path);
  return a != nullptr && b != nullptr && config::same_value(*a, *b);
}

// Whether an earlier config has another value there, or of a section's fields; an earlier version
// may have had fewer of these.
bool is_other_at(const config::Node& earlier, const config::Node& now, const std::string& path) {
  const config::Node* before = earlier.find_path(path);
  const config::Node* after = now.find_path(path);
  if (before == nullptr || after == nullptr) return false;
  if (!before->is_map() || !after->is_map()) return !config::same_value(*before, *after);
  return std::ranges::any_of(before->entries, [after](const config::Entry& entry) {
    const config::Node* value = after->find(entry.key);
    return value == nullptr || !config::same_value(entry.value, *value);
  });
}

}  // namespace

std::string long_warmup(const config::Node& resolved, double base_lr, int64_t total_steps,
                        const RateFields& fields) {
  const auto schedule = schedule_of(resolved, fields);
  if (!schedule) return "";
  const auto warmup = warmup_of(*resolved.find_path(fields.schedule), fields.schedule, total_steps);
  if (!warmup || warmup->steps <= total_steps) return "";
  return fmt::format(
      "the run has {}, and the warm-up {}: the learning rate ends at {:.3g} and never reaches "
      "{}.lr, {:.3g}; lower {}",
      counted(total_steps, fields.unit), warmup->steps,
      base_lr * schedule->factor(total_steps, total_steps), fields.optimizer, base_lr,
      warmup->field);
}

std::vector<std::string> long_warmups(const TrainerBase& trainer) {
  const auto steps = trainer.total_steps();
  if (!steps) return {};
  std::vector<std::string> lines;
  for (const auto& part : trainer.optimizers()) {
    std::string text = long_warmup(trainer.resolved_config(), part.optimizer->base_lr(),
                                   length_of(*steps, trainer), fields_of(part, trainer));
    if (!text.empty()) lines.push_back(std::move(text));
  }
  return lines;
}

std::string moved_horizon(const config::Node& resolved, double base_lr, const ChangedLength& length,
                          const RateFields& fields) {
  const auto schedule = schedule_of(resolved, fields);
  if (!schedule || !schedule->needs_total_steps()) return "";
  const auto& [earlier, total, step] = length;
  if (step >= total) return "";
  const double next = schedule->factor(step + 1, total);
  if (earlier == total || next == schedule->factor(step + 1, earlier)) return "";
  // A user's own schedule, and a chain, have no such field.
  const std::string horizon = fields.schedule + ".decay_steps";
  const bool has_field = resolved.find_path(horizon) != nullptr;
  const bool is_one_of_several = fields.optimizer != RateFields().optimizer;
  return fmt::format(
      "the run has {} now, and had {}; its schedule follows: the learning rate{} was {:.3g} in {} "
      "{} and is {:.3g} in {} {}{}",
      counted(total, fields.unit), earlier, is_one_of_several ? " of " + fields.optimizer : "",
      base_lr * schedule->factor(step, earlier), fields.unit, step, base_lr * next, fields.unit,
      step + 1,
      has_field ? fmt::format("; {}={} keeps the earlier schedule", horizon, earlier) : "");
}

std::vector<std::string> moved_horizons(const TrainerBase& trainer, const config::Node& earlier) {
  const auto total = trainer.total_steps();
  const auto former = total_steps(trainer, with_limits_of(trainer.resolved_config(), earlier));
  if (!former || !total) return {};
  const State& state = trainer.state();
  const ChangedLength length{
      .earlier_steps = length_of(*former, trainer),
      .total_steps = length_of(*total, trainer),
      .step = counts_epochs(trainer) ? std::max<int64_t>(1, state.epoch) : state.step};
  std::vector<std::string> lines;
  const config::Node& now = trainer.resolved_config();
  for (const auto& part : trainer.optimizers()) {
    const RateFields fields = fields_of(part, trainer);
    // What the rate was follows from what the schedule is now only where that has not changed.
    const bool is_other = is_other_at(earlier, now, fields.schedule) ||
                          is_other_at(earlier, now, fields.optimizer + ".lr");
    if (is_other) continue;
    std::string text = moved_horizon(now, part.optimizer->base_lr(), length, fields);
    if (!text.empty()) lines.push_back(std::move(text));
  }
  return lines;
}

std::vector<std::string> moved_horizons(const config::Node& earlier, const config::Node& now,
                                        std::optional<int64_t> step) {
  const auto former = steps_without_data(earlier);
  const auto total = steps_without_data(now);
  if (!former || !total) return {};
  const ChangedLength length{
      .earlier_steps = *former, .total_steps = *total, .step = step.value_or(*former)};
  std::vector<std::string> lines;
  for (const RateFields& fields : rate_fields_of(now)) {
    const std::string rate = fields.optimizer + ".lr";
    const bool is_same =
        is_same_at(earlier, now, fields.schedule) && is_same_at(earlier, now, rate);
    if (!is_same) continue;
    const auto base_lr = config::parse_real(now.find_path(rate)->text).value;
    if (!base_lr) continue;
    std::string text = moved_horizon(now, *base_lr, length, fields);
    if (!text.empty()) lines.push_back(std::move(text));
  }
  return lines;
}

TrainingConfig with_limits_of(const config::Node& resolved, const config::Node& earlier) {
  config::Node section = *resolved.find("training");
  for (const char* name : {"max_steps", "max_epochs", "max_samples", "max_steps_per_epoch"}) {
    const config::Node* limit = earlier.find_path(std::string("training.") + name);
    section.set(name, limit == nullptr ? config::Node::null() : *limit);
  }
  return config::read<TrainingConfig>(section);
}

}  // namespace phalanx
