// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace phalanx {

/// What the trainer is doing; the names are those of metrics.jsonl's `phase`.
enum class Phase { train, validate, predict };

/// "train", "validate" or "predict".
constexpr std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::train:
      return "train";
    case Phase::validate:
      return "validate";
    case Phase::predict:
      return "predict";
  }
  return {};
}

/// More samples than this, over all ranks, are no optimizer step but a mistake. What configs and
/// manifests say is held to it, so that counts of a step's samples do not overflow.
inline constexpr int64_t kMaxSamplesAStep = int64_t{1} << 31;

/// Where a run stands. Every hook gets it; a checkpoint records it and a resume restores it.
struct State {
  Phase phase = Phase::train;
  int64_t epoch = 0;          ///< Passes over the training data begun before this one.
  int64_t step = 0;           ///< Optimizer steps; inside a step, the number of that step, from 1.
  int64_t samples = 0;        ///< Training samples consumed, over all ranks.
  int64_t tokens = 0;         ///< Training tokens (Batch::tokens) consumed, over all ranks.
  int64_t epoch_samples = 0;  ///< Samples consumed of the present epoch, over all ranks.
  double elapsed = 0;         ///< Seconds of training so far, those before a resume included.
  int64_t overflowed_steps = 0;  ///< Steps that moved nothing, as their fp16 gradients overflowed.
  double loss_scale = 0;         ///< What the next loss is multiplied by; 0: there is no scaling.
  int64_t good_steps = 0;        ///< Steps without overflow since the loss scale was changed.
  /// A validation of this step has begun and has not ended, or was given up: the run that goes on
  /// from here makes it first.
  bool validation_due = false;
};

}  // namespace phalanx
