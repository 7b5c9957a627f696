// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/hooks.h"

#include <gtest/gtest.h>

#include "trainer/api/composition.h"

namespace phalanx {
namespace {

// Each of these is a mixin reduced to its hooks.
struct Right {
  using Hooks = HookList<TrainingStart, StepEnd, AfterLoss>;
  void on_training_start(const State&) {}
  void on_step_end(const State&, const StepResult&) {}
  void on_after_loss(const State&, const Batch&, const Loss&) {}
};
static_assert(kHooksAreSound<Right> && kHooksAreListed<Right>);

struct None {
  using Hooks = HookList<>;
  void something_else() {}
};
static_assert(kHooksAreSound<None> && kHooksAreListed<None>);

struct ByValue {
  using Hooks = HookList<EpochStart>;
  void on_epoch_start(State) {}
};
static_assert(kHooksAreSound<ByValue> && kHooksAreListed<ByValue>);

struct Misspelt {
  using Hooks = HookList<StepStart>;
  void on_step_begin(const State&) {}
};
static_assert(!kHooksAreSound<Misspelt>);

class Private {
 public:
  using Hooks = HookList<StepStart>;

 private:
  [[maybe_unused]] void on_step_start(const State&) {}
};
static_assert(!kHooksAreSound<Private>);

class Protected {
 public:
  using Hooks = HookList<StepStart>;

 protected:
  void on_step_start(const State&) {}
};
static_assert(!kHooksAreSound<Protected>);

struct WrongArgument {
  using Hooks = HookList<StepEnd>;
  void on_step_end(const State&, const NamedValues&) {}
};
static_assert(!kHooksAreSound<WrongArgument>);

struct TooFewArguments {
  using Hooks = HookList<StepEnd>;
  void on_step_end(const State&) {}
};
static_assert(!kHooksAreSound<TooFewArguments>);

struct TooManyArguments {
  using Hooks = HookList<Restore>;
  void on_restore(const State&) {}
};
static_assert(!kHooksAreSound<TooManyArguments>);

// A hook may look at the state, not change it.
struct WritesState {
  using Hooks = HookList<StepStart>;
  void on_step_start(State&) {}
};
static_assert(!kHooksAreSound<WritesState>);

struct Planned {
  struct Config {};
  using Hooks = HookList<FillPlan, OutOfMemory, StartScreen>;
  static void fill_plan(const Config&, RunPlan&) {}
  void on_out_of_memory(std::vector<std::string>& advice) { advice.emplace_back("less"); }
  void on_start_screen(std::vector<ScreenLine>& lines) { lines.push_back({"plan", "made"}); }
};
static_assert(kHooksAreSound<Planned> && kHooksAreListed<Planned>);

// Before anything is built, no object is there to be called.
struct PlannedByAnObject {
  struct Config {};
  using Hooks = HookList<FillPlan>;
  void fill_plan(const Config&, RunPlan&) {}
};
static_assert(!kHooksAreSound<PlannedByAnObject>);

struct PlannedUnlisted {
  struct Config {};
  using Hooks = HookList<>;
  static void fill_plan(const Config&, RunPlan&) {}
};
static_assert(!kHooksAreListed<PlannedUnlisted>);

struct ListedButNotDefined {
  using Hooks = HookList<StepStart, TrainingEnd>;
  void on_step_start(const State&) {}
};
static_assert(!kHooksAreSound<ListedButNotDefined>);

struct DefinedButNotListed {
  using Hooks = HookList<StepStart>;
  void on_step_start(const State&) {}
  void on_training_end(const State&) {}
};
static_assert(kHooksAreSound<DefinedButNotListed> && !kHooksAreListed<DefinedButNotListed>);

// Noticed although it could not be called as it is.
struct WronglyTypedAndNotListed {
  using Hooks = HookList<>;
  void on_validation_end(int) {}
};
static_assert(!kHooksAreListed<WronglyTypedAndNotListed>);

// What a base brings counts as the mixin's own.
struct Inherits : Right {};
static_assert(kHooksAreSound<Inherits> && kHooksAreListed<Inherits>);

static_assert(TrainingEnd::kClosing && !StepEnd::kClosing && !EpochEnd::kClosing);

struct Records {
  using Hooks = HookList<AfterLoss>;
  void on_after_loss(const State& state, const Batch& batch, const Loss&) {
    step = state.step;
    samples = batch.samples;
  }
  int64_t step = 0;
  int64_t samples = 0;
};

struct EmptyBatch : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }
};

TEST(Hooks, MayChangeWhatTheyAreGivenToFill) {
  Planned planned;
  std::vector<std::string> advice;
  OutOfMemory::call(planned, advice);
  EXPECT_EQ(advice, std::vector<std::string>{"less"});
}

TEST(Hooks, CallHandsTheArgumentsOn) {
  Records records;
  EmptyBatch batch;
  batch.samples = 3;
  AfterLoss::call(records, State{.step = 7}, batch, Loss(at::Tensor()));
  EXPECT_EQ(records.step, 7);
  EXPECT_EQ(records.samples, 3);
}

// Compositions. The trainer is only a name here: nothing of it is used.
struct AnyTrainerType {};

template <class>
struct Logging {
  static constexpr std::string_view kSection = "logging";
  using Requires = MixinList<>;
  using After = MixinList<>;
};
template <class>
struct Validation {
  static constexpr std::string_view kSection = "validation";
  using Requires = MixinList<Logging>;
  using After = MixinList<>;
};
template <class>
struct Report {
  static constexpr std::string_view kSection = "report";
  using Requires = MixinList<Validation, Logging>;
  using After = MixinList<>;
};
template <class>
struct OtherLogging {
  static constexpr std::string_view kSection = "logging";
  using Requires = MixinList<>;
  using After = MixinList<>;
};
template <class>
struct Saving {
  static constexpr std::string_view kSection = "saving";
  using Requires = MixinList<>;
  using After = MixinList<Validation, OtherLogging>;
};

template <template <class> class... Mixins>
constexpr bool kInOrder = composition_detail::kInOrder<AnyTrainerType, MixinList<>, Mixins...>;
template <template <class> class... Mixins>
constexpr bool kSectionsDiffer = composition_detail::kSectionsDiffer<Mixins<AnyTrainerType>...>;

static_assert(kInOrder<>);
static_assert(kInOrder<Logging, Validation, Report>);
static_assert(kInOrder<OtherLogging, Logging, Validation>);
static_assert(!kInOrder<Validation, Logging>, "in the wrong order");
static_assert(!kInOrder<Validation>, "missing");
static_assert(!kInOrder<Logging, Report>, "one of two missing");
static_assert(!kInOrder<OtherLogging, Validation>, "another one does not stand in");

static_assert(kInOrder<Saving>, "it follows where they are there");
static_assert(kInOrder<Logging, Validation, Saving>);
static_assert(kInOrder<Saving, Logging>);
static_assert(!kInOrder<Logging, Saving, Validation>, "before one that it follows");
static_assert(!kInOrder<Saving, Logging, OtherLogging>);

static_assert(kSectionsDiffer<>);
static_assert(kSectionsDiffer<Logging, Validation, Report>);
static_assert(!kSectionsDiffer<Logging, Validation, OtherLogging>);
static_assert(!kSectionsDiffer<Logging, Logging>);

}  // namespace
}  // namespace phalanx
