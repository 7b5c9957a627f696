// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/loss.h"
#include "trainer/api/named_values.h"
#include "trainer/api/prediction.h"
#include "trainer/api/screen_line.h"
#include "trainer/api/state.h"
#include "trainer/api/step_result.h"

namespace phalanx {

struct RunPlan;

namespace config {
struct Node;
}

/// The hooks that a mixin has: `using Hooks = HookList<StepStart, StepEnd>;`. The trainer calls
/// those and no others, in the order of the composition (closing hooks in reverse), without
/// virtual calls or empty stubs.
template <class... Tags>
struct HookList {};

/// The arguments a hook is called with.
template <class... Args>
struct HookArguments {
  template <class Tag, class Mixin>
  static constexpr bool kAccepted = Tag::template kCallable<Mixin, Args...>;
};

// A hook is a tag type that knows the method's name and arguments. kSound: a mixin has that
// method, public and callable so. kNamed: it has a public method of that name, however typed.
#define PHALANX_HOOK(Tag, method, closing, ...)                                                \
  struct Tag {                                                                                 \
    static constexpr bool kClosing = closing;                                                  \
    template <class Mixin>                                                                     \
    static constexpr bool kNamed = requires {                                                  \
      &Mixin::method;                                                                          \
    };                                                                                         \
    template <class Mixin, class... Args>                                                      \
    static constexpr bool kCallable = requires(Mixin & mixin, Args... args) {                  \
      mixin.method(args...);                                                                   \
    };                                                                                         \
    template <class Mixin>                                                                     \
    static constexpr bool kSound = HookArguments<__VA_ARGS__>::template kAccepted<Tag, Mixin>; \
    template <class Mixin, class... Args>                                                      \
    static void call(Mixin& mixin, Args&&... args) {                                           \
      mixin.method(args...);                                                                   \
    }                                                                                          \
  }

/// on_prepare(): as on_setup, before any mixin has wrapped the model or divided it over ranks.
PHALANX_HOOK(Prepare, on_prepare, false);
/// on_setup(): the data, the model and the optimizer are there, nothing is restored yet; before
/// training and before an evaluation.
PHALANX_HOOK(Setup, on_setup, false);
/// on_restore(): put back a saved state, before training starts.
PHALANX_HOOK(Restore, on_restore, false);
/// on_training_start(state): the run begins or goes on; state.step > 0 after a resume.
PHALANX_HOOK(TrainingStart, on_training_start, false, const State&);
/// on_epoch_start(state)
PHALANX_HOOK(EpochStart, on_epoch_start, false, const State&);
/// on_step_start(state): the step's micro-batches are there, nothing is computed yet.
PHALANX_HOOK(StepStart, on_step_start, false, const State&);
/// on_before_forward(state, batch): for each micro-batch; in a task's own training step for each
/// TrainingStep::forward.
PHALANX_HOOK(BeforeForward, on_before_forward, false, const State&, const Batch&);
/// on_after_loss(state, batch, loss): likewise, before its backward.
PHALANX_HOOK(AfterLoss, on_after_loss, false, const State&, const Batch&, const Loss&);
/// on_after_backward(state): before each update, with several optimizers more than once a step: its
/// gradients are whole, not clipped yet. Not where a task skips the update.
PHALANX_HOOK(AfterBackward, on_after_backward, false, const State&);
/// on_step_end(state, result): the weights are updated, unless the step was skipped; the state
/// counts this step.
PHALANX_HOOK(StepEnd, on_step_end, false, const State&, const StepResult&);
/// on_step_undone(state): in place of on_step_end, the run has gone back to the step, the weights
/// and the kept states of a checkpoint, and goes on behind the samples of the step that is undone.
PHALANX_HOOK(StepUndone, on_step_undone, false, const State&);
/// on_validation_start(state)
PHALANX_HOOK(ValidationStart, on_validation_start, false, const State&);
/// on_validation_batch_start(state, batch): for each micro-batch.
PHALANX_HOOK(ValidationBatchStart, on_validation_batch_start, false, const State&, const Batch&);
/// on_validation_batch_end(state, batch, loss)
PHALANX_HOOK(ValidationBatchEnd, on_validation_batch_end, false, const State&, const Batch&,
             const Loss&);
/// on_validation_end(state, values): mean losses and the task's metrics. Not after one that a
/// signal to stop has ended before its last micro-batch.
PHALANX_HOOK(ValidationEnd, on_validation_end, false, const State&, const NamedValues&);
/// on_save_request(state): a signal asks for a checkpoint between micro-batches of a validation,
/// which goes on after it; the state's step has ended.
PHALANX_HOOK(SaveRequest, on_save_request, false, const State&);
/// on_prediction_start(state)
PHALANX_HOOK(PredictionStart, on_prediction_start, false, const State&);
/// on_prediction_batch_start(state, batch): for each batch of this rank.
PHALANX_HOOK(PredictionBatchStart, on_prediction_batch_start, false, const State&, const Batch&);
/// on_prediction_batch_end(state, batch, predictions): one for each sample of the batch.
PHALANX_HOOK(PredictionBatchEnd, on_prediction_batch_end, false, const State&, const Batch&,
             const Predictions&);
/// on_prediction_end(state)
PHALANX_HOOK(PredictionEnd, on_prediction_end, false, const State&);
/// on_epoch_end(state): the epoch's last step has ended; state.epoch still names it.
PHALANX_HOOK(EpochEnd, on_epoch_end, false, const State&);
/// on_training_end(state): the run has ended, by its limits or a signal, not by an error.
PHALANX_HOOK(TrainingEnd, on_training_end, true, const State&);

/// on_exception(text): an error ends the run, the evaluation or the prediction; logs are still
/// open. What the hook throws is dropped.
PHALANX_HOOK(Exception, on_exception, true, const std::string&);

/// on_out_of_memory(advice): a step has run out of memory, which ends the run; adds which options
/// of the mixin's section would need less, and of what: "mixed_precision: bf16 (activations)".
PHALANX_HOOK(OutOfMemory, on_out_of_memory, false, std::vector<std::string>&);

/// on_start_screen(lines): everything is set up and restored; adds what the start screen says of
/// the mixin's section.
PHALANX_HOOK(StartScreen, on_start_screen, false, std::vector<ScreenLine>&);

#undef PHALANX_HOOK

/// fill_plan(config, plan): static; adds what the mixin's section means for the run's plan, before
/// anything is built or launched. The plan has what the mixins before it have added.
struct FillPlan {
  template <class Mixin>
  static constexpr bool kNamed = requires {
    &Mixin::fill_plan;
  };
  template <class Mixin>
  static constexpr bool kSound = requires(const typename Mixin::Config& config, RunPlan& plan) {
    Mixin::fill_plan(config, plan);
  };
};

/// complete_config(tree): static; adds to a config as the user gave it, before it is resolved, what
/// the mixin's section says of others. Throws UserError.
struct CompleteConfig {
  template <class Mixin>
  static constexpr bool kNamed = requires {
    &Mixin::complete_config;
  };
  template <class Mixin>
  static constexpr bool kSound = requires(config::Node& tree) {
    Mixin::complete_config(tree);
  };
};

/// Every hook there is.
using AllHooks =
    HookList<CompleteConfig, FillPlan, Prepare, Setup, Restore, TrainingStart, EpochStart,
             StepStart, BeforeForward, AfterLoss, AfterBackward, StepEnd, StepUndone,
             ValidationStart, ValidationBatchStart, ValidationBatchEnd, ValidationEnd, SaveRequest,
             PredictionStart, PredictionBatchStart, PredictionBatchEnd, PredictionEnd, EpochEnd,
             TrainingEnd, Exception, OutOfMemory, StartScreen>;

namespace hooks_detail {

template <class Tag, class List>
inline constexpr bool kLists = false;
template <class Tag, class... Tags>
inline constexpr bool kLists<Tag, HookList<Tags...>> = (std::is_same_v<Tag, Tags> || ...);

template <class Mixin, class List>
inline constexpr bool kAllSound = false;
template <class Mixin, class... Tags>
inline constexpr bool kAllSound<Mixin, HookList<Tags...>> = (Tags::template kSound<Mixin> && ...);

template <class Mixin, class List>
inline constexpr bool kNoneForgotten = false;
template <class Mixin, class... Tags>
inline constexpr bool kNoneForgotten<Mixin, HookList<Tags...>> =
    ((kLists<Tags, typename Mixin::Hooks> || !Tags::template kNamed<Mixin>)&&...);

}  // namespace hooks_detail

/// Every hook that the mixin lists is a public method that takes the hook's arguments: a misspelt,
/// private or wrongly typed one makes this false, and the composition does not compile.
template <class Mixin>
inline constexpr bool kHooksAreSound = hooks_detail::kAllSound<Mixin, typename Mixin::Hooks>;

/// No public method has a hook's name without being listed, which would never be called.
template <class Mixin>
inline constexpr bool kHooksAreListed = hooks_detail::kNoneForgotten<Mixin, AllHooks>;

}  // namespace phalanx
