// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/guards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/mixins/running_median.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

GuardsConfig spikes(OnBadStep action, int64_t window = 3) {
  return {.on_spike = action, .window = window};
}

StepJudgement judge(Guards& guards, int64_t step, double loss, double norm = 1) {
  return guards.judge(
      {.step = step, .loss = loss, .grad_norm = norm, .samples = [] { return "samples 3, 8"; }});
}

// Judges steps 1, 2, … of these losses; returns those that are left out.
std::vector<int64_t> left_out(Guards& guards, const std::vector<double>& losses) {
  std::vector<int64_t> out;
  int64_t step = 0;
  for (const double loss : losses) {
    if (judge(guards, ++step, loss).verdict != StepVerdict::good) out.push_back(step);
  }
  return out;
}

std::string mistakes(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(yaml, "test.yaml", diagnostics);
  config::resolve(config::declaration<GuardsConfig>(), std::move(tree), diagnostics);
  return diagnostics.text();
}

TEST(RunningMedian, IsThatOfTheLastValuesOnceThereAreAsMany) {
  RunningMedian odd(3), even(4);
  for (const double value : {9, 1, 5}) {
    EXPECT_EQ(odd.median(), std::nullopt);
    odd.add(value);
    even.add(value);
  }
  EXPECT_EQ(odd.median(), 5);
  EXPECT_EQ(even.median(), std::nullopt);
  even.add(2);
  EXPECT_EQ(even.median(), 3.5) << "of 1, 2, 5 and 9";
  odd.add(2);
  EXPECT_EQ(odd.median(), 2) << "9 has gone";
}

TEST(Guards, LeaveASpikeOutAndNotTheMedianOfIt) {
  Guards guards(spikes(OnBadStep::skip));
  EXPECT_THAT(left_out(guards, {2, 3, 2, 5.9, 6.1, 100, 2}), testing::ElementsAre(6))
      << "5.9 and 6.1 are within 3 times the median, which they raise";
}

TEST(Guards, KnowNoSpikeBeforeTheWindowIsFull) {
  Guards guards(spikes(OnBadStep::skip, 4));
  EXPECT_THAT(left_out(guards, {1, 50, 1, 50, 1}), IsEmpty());
}

TEST(Guards, JudgeTheNormToo) {
  Guards guards(spikes(OnBadStep::skip));
  for (int64_t step = 1; step <= 3; ++step) judge(guards, step, 1, 2);
  EXPECT_EQ(judge(guards, 4, 1, 19).verdict, StepVerdict::good);
  const StepJudgement bad = judge(guards, 5, 1, 21);
  EXPECT_EQ(bad.verdict, StepVerdict::skip);
  EXPECT_EQ(bad.reason,
            "the gradient norm, 21, has jumped: the median of the last 3 steps is 2; samples 3, 8");
}

TEST(Guards, MeasureANegativeLossByItsDistance) {
  Guards guards(spikes(OnBadStep::skip));
  EXPECT_THAT(left_out(guards, {-2, -2, -2, -3, 1.9, 2.1}), testing::ElementsAre(6));
}

TEST(Guards, GoBackWhereAskedTo) {
  Guards guards(spikes(OnBadStep::rollback));
  for (int64_t step = 1; step <= 3; ++step) judge(guards, step, 1);
  EXPECT_EQ(judge(guards, 4, 4).verdict, StepVerdict::undo);
}

TEST(Guards, StopWithTheValuesAndTheSamples) {
  Guards guards(spikes(OnBadStep::stop));
  for (int64_t step = 1; step <= 3; ++step) judge(guards, step, 1);
  EXPECT_THAT([&] { judge(guards, 4, 7); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(StartsWith("the loss, 7, has jumped: the median of the last 3 steps is 1"),
                        HasSubstr("samples 3, 8"), HasSubstr("guards.on_spike"))));
}

TEST(Guards, TakeWhatIsNotFiniteOnlyWhereTheyLeaveItOut) {
  Guards spikes_alone(spikes(OnBadStep::skip));
  EXPECT_FALSE(spikes_alone.takes_nonfinite());
  EXPECT_EQ(judge(spikes_alone, 1, kNan).verdict, StepVerdict::good)
      << "training.stop_on_nonfinite_loss has let it pass";
  Guards stop({.on_nonfinite = OnBadStep::stop, .on_spike = OnBadStep::skip});
  EXPECT_FALSE(stop.takes_nonfinite());
  Guards skip({.on_nonfinite = OnBadStep::skip});
  EXPECT_TRUE(skip.takes_nonfinite());
  EXPECT_EQ(judge(skip, 1, -kNan).reason, "the loss is nan; samples 3, 8");
  EXPECT_EQ(judge(skip, 2, 1, kInfinity).reason, "the gradient norm is inf; samples 3, 8");
  EXPECT_EQ(judge(skip, 3, 1e30, 1e30).verdict, StepVerdict::good) << "spikes are not looked at";
}

TEST(Guards, EndTheRunWhereTooManyStepsAreBad) {
  Guards guards({.on_nonfinite = OnBadStep::skip, .max_skips = 2, .within_steps = 5});
  EXPECT_THAT(left_out(guards, {kNan, 1, kNan, 1, 1, kNan, 1, kNan}),
              testing::ElementsAre(1, 3, 6, 8))
      << "the first is long ago with the sixth, and so is the third with the eighth";
  EXPECT_THAT([&] { judge(guards, 9, kInfinity); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(StartsWith("3 of the last 5 steps are bad, and guards.max_skips is 2:\n"),
                        HasSubstr("\n  step 6: the loss is nan; samples 3, 8\n"),
                        HasSubstr("\n  step 9: the loss is inf; samples 3, 8\n"))));
}

TEST(Guards, CountAStepOnceWhateverIsLeftOutOfIt) {
  Guards guards({.on_nonfinite = OnBadStep::skip, .max_skips = 1});
  const auto update = [&](int64_t step, const char* optimizer) {
    return guards.judge({.step = step, .grad_norm = kNan, .optimizer = optimizer}).verdict;
  };
  EXPECT_EQ(update(1, "critic"), StepVerdict::skip);
  EXPECT_EQ(update(1, "generator"), StepVerdict::skip);
  EXPECT_THAT([&] { update(2, "critic"); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(StartsWith("2 of the last 2 steps are bad, and guards.max_skips is 1:\n"),
                        HasSubstr("\n  step 1: the gradient norm of critic is nan; the gradient "
                                  "norm of generator is nan\n  step 2: the gradient norm of "
                                  "critic is nan\n"))));
}

// Wherever the run is cut, the same steps are left out, and the same one ends it.
TEST(Guards, GoOnFromWhatWasKept) {
  const GuardsConfig config{
      .on_nonfinite = OnBadStep::skip, .on_spike = OnBadStep::skip, .window = 3, .max_skips = 3};
  const std::vector<double> losses{1, 1.1, 1.2, 9, 1.3, kNan, 3.7, 1.1, 3.2, 50, 1, 99};
  const auto verdicts = [&](size_t cut) {
    auto guards = std::make_unique<Guards>(config);
    std::string verdicts;
    for (size_t i = 0; i < losses.size(); ++i) {
      if (i == cut) {
        const std::string json = guards->json();
        guards = std::make_unique<Guards>(config);
        guards->restore(json);
        EXPECT_EQ(guards->json(), json);
      }
      try {
        const auto verdict = judge(*guards, static_cast<int64_t>(i) + 1, losses[i]).verdict;
        verdicts += verdict == StepVerdict::good ? '.' : 's';
      } catch (const std::runtime_error&) {
        verdicts += 'e';
      }
    }
    return verdicts;
  };
  const std::string whole = verdicts(losses.size());
  EXPECT_THAT(whole, StartsWith("...s.s"));
  EXPECT_THAT(whole, HasSubstr("e"));
  for (size_t cut = 0; cut < losses.size(); ++cut) EXPECT_EQ(verdicts(cut), whole) << cut;
}

TEST(Guards, GoBackWithTheirMediansAndKeepTheirCount) {
  Guards guards({.on_spike = OnBadStep::rollback, .window = 3, .max_skips = 1});
  for (int64_t step = 1; step <= 3; ++step) judge(guards, step, 1);
  const std::string saved = guards.json();
  for (int64_t step = 4; step <= 6; ++step) judge(guards, step, 2.5);
  EXPECT_EQ(judge(guards, 7, 8).verdict, StepVerdict::undo);
  guards.restore(saved);
  EXPECT_THAT(guards.went_back(), StartsWith("step 7: the loss, 8, has jumped"));
  EXPECT_THAT([&] { judge(guards, 4, 4); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("step 7: "), HasSubstr("\n  step 4: the loss, 4, has jumped: the "
                                                         "median of the last 3 steps is 1"))));
}

TEST(Guards, BeginAnewWhereACheckpointHasNoStateOfThem) {
  Guards guards({.on_spike = OnBadStep::rollback, .window = 2});
  for (int64_t step = 1; step <= 2; ++step) judge(guards, step, 1);
  EXPECT_EQ(judge(guards, 3, 8).verdict, StepVerdict::undo);
  guards.went_back();
  EXPECT_EQ(judge(guards, 1, 8).verdict, StepVerdict::good) << "the window is empty";
}

TEST(Guards, RefuseAStateThatIsNone) {
  Guards guards(spikes(OnBadStep::skip));
  EXPECT_THROW(guards.restore(""), UserError);
  EXPECT_THROW(guards.restore("{}"), UserError);
}

TEST(GuardsConfig, IsChecked) {
  EXPECT_THAT(mistakes("{on_spike: skip}"), IsEmpty());
  EXPECT_THAT(mistakes("{on_spike: ignore}"), HasSubstr("none, stop, skip"));
  EXPECT_THAT(mistakes("{on_nonfinite: none}"), HasSubstr("on_nonfinite"));
  EXPECT_THAT(mistakes("{on_spike: skip, loss_factor: 1.0}"), HasSubstr("out of range"));
  EXPECT_THAT(mistakes("{on_spike: skip, window: 0}"), HasSubstr("out of range"));
  EXPECT_THAT(mistakes("{on_spike: stop, loss_factor: null, grad_norm_factor: null}"),
              HasSubstr("no step is a spike"));
}

}  // namespace
}  // namespace phalanx
