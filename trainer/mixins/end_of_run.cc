// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/end_of_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "trainer/api/stateful.h"
#include "trainer/api/task.h"
#include "trainer/averages/weight_averages.h"
#include "trainer/base/next_line.h"
#include "trainer/base/stop_reason.h"
#include "trainer/base/stop_signal.h"
#include "trainer/checkpoint/load/averaged.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/next_command.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

// Whether the run's validations measured the average of its weights.
bool measures_averages(const TrainerBase& trainer) {
  const config::Node* validate = trainer.resolved_config().find_path("averages.validate");
  if (validate == nullptr || validate->text != "true") return false;
  return std::ranges::any_of(trainer.kept_state(), [](const NamedStateful& kept) {
    return kept.name == kAveragesPart && updates_in(kept.state->json()) > 0;
  });
}

std::string next_command(const TrainerBase& trainer) {
  const std::string& exp_dir = trainer.config().exp_dir;
  if (!trainer.finished()) return command_to_resume(exp_dir, trainer.resolved_config());
  if (trainer.can_validate()) {
    return command_to_evaluate(exp_dir) + (measures_averages(trainer) ? " --average" : "");
  }
  return fmt::format("tensorboard --logdir {}", config::shell_word(exp_dir));
}

// The first line of a longer message says what is wrong.
std::string no_sample_line(const std::exception& error) {
  const std::string reason = error_text(error);
  return "\n\nno sample: " + reason.substr(0, reason.find('\n'));
}

// The task's sample, or one line with the reason that there is none: a run that has trained and
// saved to its end has not failed, whatever its model says. What only one of several ranks meets
// does end it: the others may wait for that rank.
std::string sample_lines(TrainerBase& trainer) {
  try {
    const std::string sample = trainer.sample();
    return sample.empty() ? "" : "\n\nsample:\n" + sample;
  } catch (const NoSample& error) {
    return no_sample_line(error);
  } catch (const std::exception& error) {
    if (!trainer.ranks().is_single_rank()) throw;
    return no_sample_line(error);
  }
}

bool has_skipped_every_step(const TrainerBase& trainer) {
  const State& state = trainer.state();
  return state.step > 0 && state.overflowed_steps >= state.step;
}

// How the run has ended: "finished".
std::string end_of(const TrainerBase& trainer, int signal) {
  if (!trainer.finished()) return fmt::format("stopped by signal {}", signal);
  if (has_skipped_every_step(trainer)) return "ended untrained";
  return trainer.early_end().empty() ? "finished" : "ended early";
}

// Why no weight has moved, and what helps; empty where one has.
std::string skipped_line(const TrainerBase& trainer) {
  if (!has_skipped_every_step(trainer)) return "";
  const State& state = trainer.state();
  return fmt::format(
      "\n  skipped     {}, as the gradients of float16 overflowed: no weight has moved; the loss "
      "scale is {:.3g} now: set mixed_precision.init_scale to that or less, or "
      "mixed_precision.dtype to bfloat16",
      state.step == 1 ? "the only step" : fmt::format("all {} steps", state.step),
      state.loss_scale);
}

// Throughput of the steps, and where all the time went, of this process.
std::string time_lines(const TimeSplit& time, int64_t steps, int64_t tokens) {
  if (steps == 0) return "";
  const double training = time.total - time.validation;
  const double rest =
      time.total - time.data - time.forward_backward - time.update - time.validation;
  const auto share = [&](double seconds) { return 100 * seconds / time.total; };
  return fmt::format(
      "\n  {:<12}{:.0f} tokens/s, {:.2f} steps/s\n"
      "  {:<12}forward and backward {:.1f}%, update {:.1f}%, data {:.1f}%, validation {:.1f}%, "
      "rest {:.1f}%",
      "throughput", static_cast<double>(tokens) / training, static_cast<double>(steps) / training,
      "time", share(time.forward_backward), share(time.update), share(time.data),
      share(time.validation), share(rest));
}

}  // namespace

std::string describe_end(TrainerBase& trainer, const LoggedRun& run) {
  const State& state = trainer.state();
  // Rank 0's: one may come on some ranks only now, and all must sample a sharded model, or none.
  const auto signal = static_cast<int>(trainer.of_first_rank(StopSignal::received()));
  const std::string reason = StopReason::text();  // a launcher's, which goes on
  const bool goes_on = !trainer.finished() && !reason.empty();
  std::string text =
      fmt::format("\n{} at step {} (epoch {}, {} samples, {:.1f} s of training){}",
                  goes_on ? "stopped" : end_of(trainer, signal), state.step, state.epoch,
                  state.samples, trainer.elapsed_now(), goes_on ? ": " + reason : "");
  if (!trainer.early_end().empty()) text += "\n  reason      " + trainer.early_end();
  text += run.training.line("train loss") + run.validation.line("validation");
  if (const auto metrics = run.metrics.text(); !metrics.empty()) {
    text += "\n  metrics     " + metrics;
  }
  if (state.validation_due)
    text += "\n  validation  of this step given up; the next start makes it";
  text += skipped_line(trainer);
  if (const auto broken = trainer.broken_samples(); !broken.empty()) {
    text += "\n  left out    broken samples: " + broken;
  }
  text += time_lines(trainer.time_split(), state.step - run.began.step,
                     state.tokens - run.began.tokens);
  if (signal == 0) text += sample_lines(trainer);  // a signal is in a hurry
  // A launcher that may go on without a node prints it once it has ended.
  const bool is_left_to_launcher = !trainer.finished() && NextLine::is_left_to_launcher();
  if (!goes_on && !is_left_to_launcher) text += "\n\nnext: " + next_command(trainer);
  return text;
}

}  // namespace phalanx
