// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/beyond_limit.h"

#include <fmt/format.h>

#include <string_view>

#include "trainer/api/state.h"
#include "trainer/loop/training_config.h"

namespace phalanx {
namespace {

std::string warning(std::string_view done, std::string_view field, int64_t limit) {
  return fmt::format(
      "the run has trained {} already, more than {} ({}): nothing is trained, and nothing taken "
      "back; raise {} to train on, or start a new run in another exp_dir",
      done, field, limit, field);
}

}  // namespace

std::optional<std::string> beyond_limit(const TrainingConfig& training, const State& state,
                                        int64_t samples_a_step) {
  if (training.max_steps && state.step > *training.max_steps) {
    return warning(fmt::format("{} steps", state.step), "training.max_steps", *training.max_steps);
  }
  const bool has_begun_epoch = state.epoch_samples > 0;
  const int64_t epochs = state.epoch + (has_begun_epoch ? 1 : 0);
  if (training.max_epochs && epochs > *training.max_epochs) {
    const std::string done = has_begun_epoch ? fmt::format("a part of epoch {}", epochs)
                                             : fmt::format("{} epochs", epochs);
    return warning(done, "training.max_epochs", *training.max_epochs);
  }
  // 0: an earlier version has not saved it.
  if (training.max_samples && samples_a_step > 0 &&
      state.samples - samples_a_step >= *training.max_samples) {
    return warning(fmt::format("{} samples", state.samples), "training.max_samples",
                   *training.max_samples);
  }
  return std::nullopt;
}

}  // namespace phalanx
