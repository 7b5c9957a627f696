// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/schema.h"
#include "trainer/trainer.h"

namespace phalanx::tiny {

/// A config section without fields.
struct NoFields {
  static void describe(config::Schema<NoFields>&) {}
};

/// What Spy has seen, and what it does; one for the process, so clear it before each run.
struct SpyNotes {
  std::vector<std::string> events;  ///< Names of hooks, in order.
  std::vector<State> states;        ///< At each end of a step.
  std::vector<StepResult> results;  ///< Likewise.
  std::function<void(TrainerBase&)> at_restore;
  std::function<void(TrainerBase&)> at_training_start;
  std::function<void(TrainerBase&)> at_step_start;
  std::function<void(TrainerBase&)> at_before_forward;
  std::function<void(TrainerBase&)> at_step_end;
  std::function<void(TrainerBase&)> at_step_undone;
  std::function<void(TrainerBase&)> at_validation_batch_start;
  std::function<void(TrainerBase&)> at_save_request;
};
inline SpyNotes spy;

/// A mixin that notes the hooks it is called for.
template <class Derived>
class Spy : public Mixin<Derived, Spy> {
 public:
  static constexpr std::string_view kSection = "spy";
  static constexpr std::string_view kMeaning = "notes what happens";
  using Config = NoFields;
  using Hooks = AllHooks;

  explicit Spy(Config) {}

  static void complete_config(config::Node&) {}
  static void fill_plan(const Config&, RunPlan&) {}
  void on_prepare() {}
  void on_setup() { note("setup"); }
  void on_restore() { note("restore", spy.at_restore); }
  void on_training_start(const State&) { note("training start", spy.at_training_start); }
  void on_epoch_start(const State&) { note("epoch start"); }
  void on_step_start(const State&) { note("step start", spy.at_step_start); }
  void on_before_forward(const State&, const Batch&) {
    note("before forward", spy.at_before_forward);
  }
  void on_after_loss(const State&, const Batch&, const Loss&) { note("after loss"); }
  void on_after_backward(const State&) { note("after backward"); }
  void on_step_end(const State& state, const StepResult& result) {
    spy.states.push_back(state);
    spy.results.push_back(result);
    note("step end", spy.at_step_end);
  }
  void on_step_undone(const State&) { note("step undone", spy.at_step_undone); }
  void on_validation_start(const State&) { note("validation start"); }
  void on_validation_end(const State&, const NamedValues&) { note("validation end"); }
  void on_validation_batch_start(const State&, const Batch&) {
    note("validation batch start", spy.at_validation_batch_start);
  }
  void on_validation_batch_end(const State&, const Batch&, const Loss&) {
    note("validation batch end");
  }
  void on_save_request(const State&) { note("save request", spy.at_save_request); }
  void on_prediction_start(const State&) { note("prediction start"); }
  void on_prediction_batch_start(const State&, const Batch&) { note("prediction batch start"); }
  void on_prediction_batch_end(const State&, const Batch&, const Predictions&) {
    note("prediction batch end");
  }
  void on_prediction_end(const State&) { note("prediction end"); }
  void on_exception(const std::string& text) { note(("exception: " + text).c_str()); }
  void on_epoch_end(const State&) { note("epoch end"); }
  void on_training_end(const State&) { note("training end"); }
  void on_out_of_memory(std::vector<std::string>&) { note("out of memory"); }
  // No step of the run: not among the events.
  void on_start_screen(std::vector<ScreenLine>& lines) { lines.push_back({"spy", "is here"}); }

 private:
  void note(const char* event, const std::function<void(TrainerBase&)>& action = {}) {
    spy.events.emplace_back(event);
    if (action) action(this->trainer());
  }
};

using SpiedTrainer = Trainer<Spy>;

/// A trainer with nothing but a Spy.
inline std::unique_ptr<SpiedTrainer> make_spied(const Parts& parts, const TrainingConfig& training,
                                                const TrainerConfig& trainer = {
                                                    .name = "tiny", .exp_dir = "nowhere"}) {
  std::vector<config::Entry> sections{{"spy", {}, config::Node::map()}};
  return std::make_unique<SpiedTrainer>(make_setup(parts, training, trainer, std::move(sections)));
}

}  // namespace phalanx::tiny
