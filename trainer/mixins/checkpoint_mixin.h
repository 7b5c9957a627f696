#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/config/schema.h"
#include "trainer/core/hooks.h"
#include "trainer/core/mixin.h"

namespace phalanx {

/// Whether a run whose folder holds checkpoints goes on from them.
enum class Resume { automatic, never };

struct VerifiedCheckpoint;

/// The section `checkpoint`: when to save, what to keep, whether to go on.
struct CheckpointConfig {
  std::optional<int64_t> save_every_n_steps = 200;
  std::optional<double> save_every_n_seconds;
  std::optional<int64_t> keep_last = 3;
  Resume resume = Resume::automatic;

  static void describe(config::Schema<CheckpointConfig>& s);
};

/// What CheckpointMixin does, whatever the composition.
class CheckpointMixinBase {
 public:
  explicit CheckpointMixinBase(CheckpointConfig config) : config_(config) {}

 protected:
  void restore(TrainerBase& trainer);
  void save_if_due(TrainerBase& trainer);
  void save_last(TrainerBase& trainer);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<VerifiedCheckpoint> find_newest(TrainerBase& trainer) const;
  void save(TrainerBase& trainer);

  CheckpointConfig config_;
  std::optional<int64_t> resumed_step_;
  std::optional<int64_t> saved_step_;
  Clock::time_point saved_at_ = Clock::now();
};

/// Saves a run every n steps or seconds and at its end, and goes on from the newest good
/// checkpoint of its folder: model, optimizer, random numbers, place in the data.
template <class Derived>
class CheckpointMixin : public Mixin<Derived, CheckpointMixin>, private CheckpointMixinBase {
 public:
  static constexpr std::string_view kSection = "checkpoint";
  static constexpr std::string_view kMeaning = "when to save, what to keep, whether to go on";
  using Config = CheckpointConfig;
  using Hooks = HookList<Restore, StepEnd, TrainingEnd>;

  using CheckpointMixinBase::CheckpointMixinBase;

  void on_restore() { restore(this->trainer()); }
  void on_step_end(const State&, const StepResult& result) {
    // The save at the end follows, and knows that the epoch has ended.
    if (!result.ends_training) save_if_due(this->trainer());
  }
  void on_training_end(const State&) { save_last(this->trainer()); }
};

}  // namespace phalanx
