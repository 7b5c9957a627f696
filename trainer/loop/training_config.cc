// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/training_config.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <vector>

#include "trainer/api/state.h"
#include "trainer/base/joined.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

// The largest bound of gradients: three times the largest power of ten that float32 holds.
constexpr double kLargestBound = 3e38;

// The product of counts; UserError where it is more samples than a step may hold.
int64_t samples_a_step(int64_t batch_size, int64_t world_size, int64_t micro_batches) {
  int64_t samples = 0;
  const bool overflows = __builtin_mul_overflow(batch_size, world_size, &samples) ||
                         __builtin_mul_overflow(samples, micro_batches, &samples);
  if (!overflows && samples <= kMaxSamplesAStep) return samples;
  throw UserError("training.batch_size " + std::to_string(batch_size) + " x " +
                  (micro_batches == 1 ? std::string()
                                      : "training.gradient_accumulation_steps " +
                                            std::to_string(micro_batches) + " x ") +
                  std::to_string(world_size) + " ranks are more samples than a step may hold, " +
                  std::to_string(kMaxSamplesAStep) + ": lower one of them");
}

// Sizes of micro-batches by which ranks can share a step's samples evenly, the largest first; of
// many those next to `wanted`.
std::vector<int64_t> fitting_batch_sizes(int64_t samples, int64_t world_size, int64_t wanted) {
  if (samples % world_size != 0) return {};
  const int64_t share = samples / world_size;
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size * size <= share; ++size) {
    if (share % size != 0) continue;
    sizes.push_back(size);
    if (size * size != share) sizes.push_back(share / size);
  }
  std::sort(sizes.begin(), sizes.end(), std::greater());
  constexpr std::ptrdiff_t kMax = 10;
  const auto nearest =
      std::lower_bound(sizes.begin(), sizes.end(), wanted, std::greater()) - sizes.begin();
  const auto spare = std::max<std::ptrdiff_t>(std::ssize(sizes) - kMax, 0);
  const auto first = std::clamp<std::ptrdiff_t>(nearest - kMax / 2, 0, spare);
  const auto count = std::min(std::ssize(sizes), kMax);
  return {sizes.begin() + first, sizes.begin() + first + count};
}

}  // namespace

void TrainerConfig::describe(config::Schema<TrainerConfig>& s) {
  s.field("name", &TrainerConfig::name, "which registered trainer").mandatory();
  s.field("exp_name", &TrainerConfig::exp_name,
          "name of the experiment; null: the config's stem and the sorted overrides")
      .resume_may_change();
  s.field("exp_dir", &TrainerConfig::exp_dir,
          "folder of the run; filled with runs/<exp_name>/run_N when not given")
      .mandatory()
      .resume_may_change();
  s.field("log_dir_name", &TrainerConfig::log_dir_name, "folder for logs inside exp_dir");
  s.field("use_double_weight_precision", &TrainerConfig::use_double_weight_precision,
          "train with weights, gradients and optimizer state in double precision");
}

void TrainingConfig::describe(config::Schema<TrainingConfig>& s) {
  s.field("max_steps", &TrainingConfig::max_steps, "stop after this many optimizer steps")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("max_epochs", &TrainingConfig::max_epochs, "stop after this many passes over the data")
      .unit("epochs")
      .at_least(1)
      .resume_may_change();
  s.field("max_samples", &TrainingConfig::max_samples,
          "stop after the step that reaches this many samples, over all ranks")
      .count()
      .unit("samples")
      .at_least(1)
      .resume_may_change();
  s.field("max_seconds", &TrainingConfig::max_seconds,
          "stop after the step that reaches this much training time, resumed parts included")
      .resume_may_change();
  s.field("max_steps_per_epoch", &TrainingConfig::max_steps_per_epoch,
          "end an epoch after this many steps, and begin the next one with another order of the "
          "data; null: when the data ends")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("batch_size", &TrainingConfig::batch_size, "samples a rank and micro-batch")
      .unit("samples")
      .at_least(1)
      .resume_may_change();
  s.field("global_batch_size", &TrainingConfig::global_batch_size,
          "samples an optimizer step over all ranks, which a run keeps; gradient accumulation "
          "follows from it")
      .unit("samples")
      .at_least(1);  // A resume may write the number that the run has (accumulation_keeping).
  s.field("gradient_accumulation_steps", &TrainingConfig::gradient_accumulation_steps,
          "micro-batches a rank and optimizer step; null: 1, or what global_batch_size needs")
      .unit("micro-batches")
      .at_least(1)
      .resume_may_change();
  s.field("clip_grad_norm", &TrainingConfig::clip_grad_norm,
          "scale gradients down to this 2-norm; null: do not")
      .greater_than(0)
      .at_most(kLargestBound);
  s.field("clip_grad_value", &TrainingConfig::clip_grad_value,
          "clamp each gradient element to ± this; null: do not")
      .greater_than(0)
      .at_most(kLargestBound);
  s.field("stop_on_nonfinite_loss", &TrainingConfig::stop_on_nonfinite_loss,
          "end the run with an error, the weights untouched, when a loss or a gradient is NaN or "
          "infinite")
      .resume_may_change();
  s.field("seed", &TrainingConfig::seed, "of initial weights, dropout and the order of samples")
      .at_least(0);
  s.field(
       "step_lr_interval", &TrainingConfig::step_lr_interval,
       "what learning-rate schedules count. epoch: their numbers of steps are numbers of epochs, "
       "and the rate is the same in all steps of one")
      .choices({{"step", LrInterval::step}, {"epoch", LrInterval::epoch}});
  s.field("float32_matmul_precision", &TrainingConfig::float32_matmul_precision,
          "what float32 matrices are multiplied in. highest: float32; high: on GPUs TensorFloat32 "
          "(faster, with 3 digits); medium: the same, and on CPUs bfloat16 (2 digits) where oneDNN "
          "has it. As torch.set_float32_matmul_precision")
      .choices({{"highest", MatmulPrecision::highest},
                {"high", MatmulPrecision::high},
                {"medium", MatmulPrecision::medium}})
      .resume_may_change();
  s.field("deterministic", &TrainingConfig::deterministic,
          "take only algorithms that give the same bits each time, also on GPUs, and end with an "
          "error where LibTorch has none; slower there")
      .resume_may_change();
  s.field("deterministic_warn_only", &TrainingConfig::deterministic_warn_only,
          "with deterministic: warn, instead of an error, where LibTorch has no deterministic "
          "algorithm")
      .resume_may_change();
  s.ineffective({"deterministic_warn_only"}, "deterministic is false",
                [](const TrainingConfig& config) { return !config.deterministic; });
  s.check([](const TrainingConfig& c) -> std::optional<std::string> {
    if (!c.max_steps && !c.max_epochs && !c.max_samples && !c.max_seconds) {
      return "the run has no end: set max_steps, max_epochs, max_samples or max_seconds";
    }
    return std::nullopt;
  });
  s.check([](const TrainingConfig& c) -> std::optional<std::string> {
    if (c.clip_grad_norm && c.clip_grad_value) {
      return "set clip_grad_norm or clip_grad_value, not both";
    }
    return std::nullopt;
  });
}

int64_t TrainingConfig::accumulation(int64_t world_size) const {
  if (!global_batch_size) {
    const int64_t steps = gradient_accumulation_steps.value_or(1);
    samples_a_step(batch_size, world_size, steps);
    return steps;
  }
  const int64_t micro = samples_a_step(batch_size, world_size, 1);
  if (*global_batch_size > kMaxSamplesAStep) {
    throw UserError("training.global_batch_size " + std::to_string(*global_batch_size) +
                    " is more samples than a step may hold, " + std::to_string(kMaxSamplesAStep));
  }
  if (*global_batch_size % micro != 0) {
    throw UserError("training.global_batch_size " + std::to_string(*global_batch_size) +
                    " is not a multiple of " + std::to_string(micro) +
                    " (training.batch_size x ranks)");
  }
  const int64_t steps = *global_batch_size / micro;
  if (gradient_accumulation_steps && *gradient_accumulation_steps != steps) {
    throw UserError("training.global_batch_size " + std::to_string(*global_batch_size) + " needs " +
                    std::to_string(steps) + " micro-batches a step, but " +
                    "training.gradient_accumulation_steps says " +
                    std::to_string(*gradient_accumulation_steps) + ": set one of the two");
  }
  return steps;
}

int64_t TrainingConfig::accumulation_keeping(int64_t global_batch, int64_t world_size) const {
  const int64_t steps = accumulation(world_size);
  const int64_t micro = batch_size * world_size;
  if (micro * steps == global_batch) return steps;
  const bool fixed = global_batch_size || gradient_accumulation_steps;
  if (!fixed && global_batch % micro == 0) return global_batch / micro;
  const std::vector<int64_t> fitting = fitting_batch_sizes(global_batch, world_size, batch_size);
  const std::string held = "this run's steps hold " + std::to_string(global_batch) + " samples, ";
  const std::string ranks = world_size == 1 ? "one rank" : std::to_string(world_size) + " ranks";
  if (fitting.empty()) {
    throw UserError(held + "which " + ranks + " cannot share evenly: start as many as divide it");
  }
  std::vector<std::string> changes;
  if (global_batch_size) {
    changes.push_back("training.global_batch_size=" + std::to_string(global_batch));
  }
  if (gradient_accumulation_steps) {
    changes.emplace_back("training.gradient_accumulation_steps=null");
  }
  if (global_batch % micro != 0) {
    const auto text = [](int64_t size) { return std::to_string(size); };
    changes.push_back("training.batch_size to one that fits: " + joined(fitting, ", ", text));
  }
  throw UserError(held + "which a run keeps, but " + ranks +
                  " with training.batch_size=" + std::to_string(batch_size) + " make it " +
                  std::to_string(micro * steps) + ". Set " + joined(changes, " and "));
}

EpochSize TrainingConfig::epoch_of(const EpochSize& pass, int64_t global_batch) const {
  if (!max_steps_per_epoch || *max_steps_per_epoch >= pass.steps) return pass;
  return {.samples = std::min(pass.samples, *max_steps_per_epoch * global_batch),
          .steps = *max_steps_per_epoch};
}

std::optional<int64_t> TrainingConfig::total_steps(const EpochSize& pass,
                                                   int64_t global_batch) const {
  const EpochSize epoch = epoch_of(pass, global_batch);
  int64_t total = std::numeric_limits<int64_t>::max();
  if (max_steps) total = std::min(total, *max_steps);
  if (max_epochs) {
    int64_t steps = 0;
    const bool endless = __builtin_mul_overflow(*max_epochs, epoch.steps, &steps);
    if (!endless) total = std::min(total, steps);
  }
  if (max_samples) {
    const int64_t rest = *max_samples % epoch.samples;
    total = std::min(total, *max_samples / epoch.samples * epoch.steps +
                                (rest + global_batch - 1) / global_batch);
  }
  if (total == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return total;
}

bool TrainingConfig::limit_reached(const State& state) const {
  return (max_steps && state.step >= *max_steps) || (max_epochs && state.epoch >= *max_epochs) ||
         (max_samples && state.samples >= *max_samples) ||
         (max_seconds && std::chrono::duration<double>(state.elapsed) >= max_seconds->length);
}

TrainingConfig training_config(const config::Node& resolved) {
  return config::read<TrainingConfig>(*resolved.find("training"));
}

}  // namespace phalanx
