// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/layout.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<Retained> steps(const std::vector<int64_t>& numbers) {
  std::vector<Retained> checkpoints;
  for (const int64_t number : numbers) checkpoints.push_back({.step = number});
  return checkpoints;
}

TEST(ToPrune, TheLastStay) {
  const auto four = steps({100, 200, 300, 400});
  EXPECT_THAT(to_prune(four, {.keep_last = 2}), ElementsAre(100, 200));
  EXPECT_THAT(to_prune(four, {.keep_last = 1}), ElementsAre(100, 200, 300));
  EXPECT_THAT(to_prune(four, {.keep_last = 4}), IsEmpty());
  EXPECT_THAT(to_prune(four, {.keep_last = 1000}), IsEmpty());
  EXPECT_THAT(to_prune(steps({}), {.keep_last = 1}), IsEmpty());
  EXPECT_THAT(to_prune(four, {}), IsEmpty()) << "without a limit all stay";
}

TEST(ToPrune, TheOneThatTheRunCameFromStays) {
  EXPECT_THAT(to_prune(steps({100, 200, 300, 400}), {.keep_last = 2, .resumed_step = 100}),
              ElementsAre(200));
}

TEST(ToPrune, OrderOfCommitCountsNotTheStep) {
  // 300 was saved last, after a resume from 200 that gave 800 and 900 up.
  EXPECT_THAT(to_prune(steps({200, 800, 900, 300}), {.keep_last = 2}), ElementsAre(200, 800));
}

TEST(ToPrune, EveryNthStays) {
  EXPECT_THAT(
      to_prune(steps({0, 100, 150, 200, 250, 300}), {.keep_last = 1, .keep_every_n_steps = 200}),
      ElementsAre(0, 100, 150, 250));
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The steps that stay of 1, 2, ... with these metrics, beside the newest.
std::vector<int64_t> best(const std::vector<double>& metrics, Better mode, int64_t k) {
  std::vector<Retained> checkpoints;
  for (const double metric : metrics) {
    checkpoints.push_back({.step = static_cast<int64_t>(checkpoints.size()) + 1});
    if (!std::isnan(metric)) checkpoints.back().metric = metric;
  }
  checkpoints.push_back({.step = 1000});
  std::vector<int64_t> stay;
  const auto pruned =
      to_prune(checkpoints, {.keep_last = 1, .keep_best = KeepBest{.mode = mode, .k = k}});
  for (const auto& checkpoint : checkpoints) {
    const bool goes = std::find(pruned.begin(), pruned.end(), checkpoint.step) != pruned.end();
    if (!goes && checkpoint.step != 1000) stay.push_back(checkpoint.step);
  }
  return stay;
}

TEST(ToPrune, TheBestStay) {
  EXPECT_THAT(best({3, 1, 2}, Better::lower, 1), ElementsAre(2));
  EXPECT_THAT(best({3, 1, 2}, Better::lower, 2), ElementsAre(2, 3));
  EXPECT_THAT(best({3, 1, 2}, Better::higher, 1), ElementsAre(1));
  EXPECT_THAT(best({0.0, -0.5, 0.5}, Better::higher, 1), ElementsAre(3));
  EXPECT_THAT(best({-1, 0.0, -2}, Better::higher, 1), ElementsAre(2)) << "nought is a value";
  EXPECT_THAT(best({kNone, 5, kNone}, Better::lower, 2), ElementsAre(2)) << "NaN is none";
  EXPECT_THAT(best({kNone, kNone}, Better::higher, 1), IsEmpty());
  EXPECT_THAT(best({2, 2, 2}, Better::lower, 1), ElementsAre(3)) << "of equals the latest";
  EXPECT_THAT(best({1, std::numeric_limits<double>::infinity()}, Better::higher, 1),
              ElementsAre(2));
}

TEST(ToPrune, TheNewestStaysWhateverTheOrder) {
  EXPECT_THAT(to_prune(steps({400, 100, 200, 300}), {.keep_last = 2, .newest_step = 400}),
              ElementsAre(100));
}

TEST(ToPrune, NumbersBelowOneAreTheCallersMistake) {
  EXPECT_THROW(to_prune(steps({}), {.keep_last = 0}), std::logic_error);
  EXPECT_THROW(to_prune(steps({}), {.keep_every_n_steps = 0}), std::logic_error);
  EXPECT_THROW(to_prune(steps({}), {.keep_best = KeepBest{.k = 0}}), std::logic_error);
}

// As after a clock was set back, or a copy of the folder.
TEST(Prune, TheNewestStaysWhateverTheFilesTimesSay) {
  const TemporaryFolder folder;
  ExampleRun run;
  for (const int64_t step : {1, 2, 3}) {
    save_checkpoint(folder.path(), run.snapshot(step));
    const auto manifest = folder.path() / step_folder_name(step) / "manifest.json";
    std::filesystem::last_write_time(
        manifest, std::filesystem::file_time_type::clock::now() + std::chrono::hours(step));
  }
  save_checkpoint(folder.path(), run.snapshot(4), {.retention = {.keep_last = 1}});
  EXPECT_THAT(committed_steps(folder.path()), UnorderedElementsAre(3, 4));
  EXPECT_THAT(prune(folder.path(), {.keep_last = 1}), IsEmpty());
  EXPECT_THAT(committed_steps(folder.path()), UnorderedElementsAre(3, 4)) << "as latest says";
}

TEST(Prune, KnowsTheBestByItsManifest) {
  const TemporaryFolder folder;
  ExampleRun run;
  const auto save = [&](int64_t step, double metric) {
    Snapshot snapshot = run.snapshot(step);
    snapshot.metrics = {{"accuracy", metric}};
    save_checkpoint(
        folder.path(), snapshot,
        {.retention = {.keep_last = 1,
                       .keep_best = KeepBest{.metric = "accuracy", .mode = Better::higher}}});
  };
  save(1, 0.5);
  save(2, 0.9);
  save(3, kNone);
  save(4, 0.7);
  EXPECT_THAT(committed_steps(folder.path()), UnorderedElementsAre(2, 4));
  spill(folder / "step-00000002/manifest.json", "damaged");
  save(5, 0.1);
  EXPECT_THAT(committed_steps(folder.path()), UnorderedElementsAre(4, 5))
      << "what is damaged is no best one";
}

}  // namespace
}  // namespace phalanx
