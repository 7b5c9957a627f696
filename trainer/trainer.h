// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/base/stop_wait.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/exchanged_weights.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/trainer_schema.h"

namespace phalanx {

/// A composition of mixins around one training loop, chosen at compile time and set by config:
/// the composition is the schema. Mixins' hooks run in the order of the list, closing ones in
/// reverse.
///
///   set up (wrap the model); bind the optimizer; restore; training starts
///   until a limit or a signal:
///     epoch starts
///     for each step of the epoch:            its micro-batches are there first: their tokens weigh
///       step starts                          the losses, so that the step's loss is the mean
///       for each micro-batch:                over all its tokens, whatever the split; a task may
///         before forward; forward; after loss; backward    run its passes in an order of its own
///       after backward; clip, learning rate of this step, optimizer
///       step ends                            validation and checkpoints hang here; not where a
///                                            guard undoes it: the run is at a checkpoint then
///     epoch ends                             not where a limit or a signal cuts it short
///   training ends
template <template <class> class... Mixins>
class Trainer final : public TrainerBase, public Mixins<Trainer<Mixins...>>... {
 public:
  /// The whole config of this composition.
  static config::Declaration declaration() {
    config::Declaration declaration = trainer_declaration();
    (declaration.add_section(std::string(Mixins<Trainer>::kSection),
                             config::declaration<typename Mixins<Trainer>::Config>(),
                             std::string(Mixins<Trainer>::kMeaning)),
     ...);
    add_registered_sections(declaration);
    return declaration;
  }

  /// Adds to a config that is not resolved yet what its sections say of others.
  static void complete_config(config::Node& tree) { (complete_by<Mixins<Trainer>>(tree), ...); }

  /// What a resolved config of this composition asks for.
  static void fill_plan(const config::Node& resolved, RunPlan& plan) {
    (fill_share<Mixins<Trainer>>(resolved, plan), ...);
  }

  explicit Trainer(TrainerSetup setup)
      : TrainerBase(std::move(setup)),
        Mixins<Trainer>(config::read<typename Mixins<Trainer>::Config>(
            *resolved_config().find(Mixins<Trainer>::kSection)))... {
    static_assert((kHooksAreSound<Mixins<Trainer>> && ...),
                  "a hook that a mixin lists is misspelt, private or takes other arguments");
    static_assert((kHooksAreListed<Mixins<Trainer>> && ...),
                  "a mixin has a method with a hook's name that its Hooks does not list");
    static_assert(composition_detail::kInOrder<Trainer, MixinList<>, Mixins...>,
                  "a mixin that another one Requires is missing or comes after it, or one that it "
                  "says it is After comes later");
    static_assert(composition_detail::kSectionsDiffer<Mixins<Trainer>...>,
                  "two mixins have the same section");
  }

  void train() override {
    telling_of_errors([this] { run(); });
  }

  std::vector<NamedValues> evaluate(const LoadModel& load, const Evaluation& what) override {
    std::vector<NamedValues> values;
    telling_of_errors([&] {
      const bool of_config = what.sets.empty();
      require_files_are_read(!of_config);
      prepare_model(load);
      for (size_t set = 0; set < (of_config ? 1 : what.sets.size()); ++set) {
        open_validation(of_config ? std::vector<std::filesystem::path>() : what.sets[set]);
        values.push_back(validate(what.amount, what.count).value());
      }
    });
    return values;
  }

  void use(const LoadModel& load, const LoadModel& action) override {
    telling_of_errors([&] {
      prepare_model(load);
      use_model({.activity = "use of the model"}, action);
    });
  }

  void predict(const LoadModel& load, const PredictionRequest& request) override {
    telling_of_errors([&] {
      prepare_model(load);
      call<PredictionStart>(state());
      make_predictions(
          request,
          {.before = [this](const State& state,
                            const Batch& batch) { call<PredictionBatchStart>(state, batch); },
           .after =
               [this](const State& state, const Batch& batch, const Predictions& predictions) {
                 call<PredictionBatchEnd>(state, batch, predictions);
               }});
      call<PredictionEnd>(state());
    });
  }

  /// Validates in the midst of training, with the hooks around it. Nothing where a signal to stop
  /// ends it early: the run's checkpoint says then that it is due.
  std::optional<NamedValues> validate(const ValidationAmount& amount, const WorkCount& count = {}) {
    require_text_data(amount.texts);
    begin_validation();
    call<ValidationStart>(state());
    std::optional<ExchangedWeights> exchanged(std::in_place, exchange_weights());
    const ValidationHooks hooks{
        .before = [this](const State& state,
                         const Batch& batch) { call<ValidationBatchStart>(state, batch); },
        .after = [this](const State& state, const Batch& batch,
                        const Loss& loss) { call<ValidationBatchEnd>(state, batch, loss); },
        .save = [&] { exchanged->with_own([this] { call<SaveRequest>(state()); }); },
        .count = count};
    std::optional<NamedValues> values = validation_means(amount.max_batches, hooks);
    if (values && amount.texts > 0) {
      if (const auto scores = text_score_means(amount.texts, hooks)) {
        values->insert(values->end(), scores->begin(), scores->end());
      } else {
        values.reset();
      }
    }
    exchanged.reset();
    if (!values) return std::nullopt;
    end_validation(*values);
    call<ValidationEnd>(state(), *values);
    return values;
  }

 private:
  void run() {
    call<Prepare>();
    call<Setup>();
    require_engine();
    bind_optimizers();
    call<Restore>();
    restored();
    begin_training();
    call<TrainingStart>(state());
    train_epochs();
    call<TrainingEnd>(state());
  }

  void train_epochs() {
    const StopWait wait(ranks().is_single_rank() ? "this step" : "the next step");
    while (begin_epoch()) {
      call<EpochStart>(state());
      while (begin_step()) {
        call<StepStart>(state());
        if (run_step()) {
          call<StepEnd>(state(), end_step());
        } else {
          call<StepUndone>(state());
        }
      }
      if (!epoch_can_end()) break;
      call<EpochEnd>(state());
      end_epoch();
    }
  }

  void prepare_model(const LoadModel& load) {
    call<Prepare>();
    call<Setup>();
    require_engine();
    load(task_model());
  }

  // Mixins hear of an error before the trainer, and its logs with it, is gone.
  template <class Action>
  void telling_of_errors(const Action& action) {
    try {
      action();
    } catch (const std::exception& error) {
      try {
        call<Exception>(text_of(error));
      } catch (...) {  // The first error is what ends the run.
      }
      throw;
    }
  }

  template <class Mixin>
  static void complete_by(config::Node& tree) {
    if constexpr (hooks_detail::kLists<CompleteConfig, typename Mixin::Hooks>) {
      Mixin::complete_config(tree);
    }
  }

  template <class Mixin>
  static void fill_share(const config::Node& resolved, RunPlan& plan) {
    if constexpr (hooks_detail::kLists<FillPlan, typename Mixin::Hooks>) {
      Mixin::fill_plan(config::read<typename Mixin::Config>(*resolved.find(Mixin::kSection)), plan);
    }
  }

  void before_forward(const Batch& batch) override { call<BeforeForward>(state(), batch); }
  void after_loss(const Batch& batch, const Loss& loss) override {
    call<AfterLoss>(state(), batch, loss);
  }
  void after_backward() override { call<AfterBackward>(state()); }

  std::vector<std::string> memory_advice() override {
    std::vector<std::string> advice;
    call<OutOfMemory>(advice);
    return advice;
  }

  std::vector<ScreenLine> screen_lines() override {
    std::vector<ScreenLine> lines;
    call<StartScreen>(lines);
    return lines;
  }

  template <class Hook, class... Args>
  void call(Args&&... args) {
    if constexpr (Hook::kClosing) {
      int order = 0;
      // The right operand of an assignment is evaluated first: this folds from the last mixin on.
      ((call_one<Hook, Mixins<Trainer>>(args...), order) = ... = 0);
    } else {
      (call_one<Hook, Mixins<Trainer>>(args...), ...);
    }
  }

  template <class Hook, class Mixin, class... Args>
  void call_one(Args&... args) {
    if constexpr (hooks_detail::kLists<Hook, typename Mixin::Hooks>) {
      Hook::call(static_cast<Mixin&>(*this), args...);
    }
  }
};

}  // namespace phalanx
