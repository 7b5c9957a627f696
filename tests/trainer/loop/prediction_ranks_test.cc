// SPDX-License-Identifier: Apache-2.0
// Predictions that several ranks make.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/loop/prediction_rounds.h"

namespace phalanx {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeout = 3s;
constexpr int64_t kSamples = 6;

struct One : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }
};

/// Samples that take a while to read for the first time: all of them longer than an operation
/// waits, each of them less.
class SlowSource : public PredictionSource {
 public:
  int64_t samples() const override { return kSamples; }
  std::string fingerprint() const override { return "slow"; }

  PredictionBatch batch(int64_t begin, int64_t) const override {
    const auto end = Clock::now() + kTimeout / 4;
    while (begin >= read_ && Clock::now() < end) std::this_thread::yield();
    read_ = std::max(read_, begin + 1);
    PredictionBatch made{.batch = std::make_unique<One>(), .problems = {}};
    made.problems.emplace_back();
    return made;
  }

 private:
  mutable int64_t read_ = 0;
};

TEST(PredictionRanks, WaitForTheFirstToReadAllOfALongInput) {
  const auto outcome = in_ranks(
      2,
      [](World& world) {
        std::vector<std::string> texts;
        const PredictionRequest request{
            .files = {},
            .batch_size = 1,
            .format = [](int64_t sample, const Prediction&) { return std::to_string(sample); },
            .format_problem = [](int64_t, const std::string& problem) { return problem; },
            .done = [](const PredictionSource&) { return int64_t{0}; },
            .take =
                [&](const std::vector<std::string>& some) {
                  texts.insert(texts.end(), some.begin(), some.end());
                }};
        predict_in_rounds(SlowSource(), request, world.ranks(), [](Batch&, bool) {
          return Predictions{{{"is", int64_t{1}}}};
        });
        const std::vector<std::string> all{"0", "1", "2", "3", "4", "5"};
        require(!world.ranks().is_first() || texts == all, "all texts, in order");
      },
      {.timeout = kTimeout});
  EXPECT_EQ(outcome, RankOutcome{});
}

/// The samples of a batch.
struct Some : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }
};

/// Samples of which every third cannot be read, if some cannot. Asked for none, it gives what a
/// model would be called with.
class SomeBroken : public PredictionSource {
 public:
  SomeBroken(int64_t samples, bool are_broken) : samples_(samples), are_broken_(are_broken) {}

  int64_t samples() const override { return samples_; }
  std::string fingerprint() const override { return "some"; }

  PredictionBatch batch(int64_t begin, int64_t end) const override {
    PredictionBatch made{.batch = std::make_unique<Some>(), .problems = {}};
    for (int64_t i = begin; i < end; ++i) {
      const bool is_broken = are_broken_ && i % 3 == 0;
      made.problems.emplace_back();
      if (is_broken) made.problems.back() = "broken";
      if (!is_broken) made.batch->sample_numbers.push_back(i);
    }
    if (begin < end && made.batch->sample_numbers.empty()) made.batch.reset();
    return made;
  }

 private:
  int64_t samples_;
  bool are_broken_;
};

// What rank 0 is given, and how often this rank computes.
struct Seen {
  std::vector<std::string> texts;
  int64_t computed = 0;
};

Seen predicted(const PredictionSource& source, int64_t batch_size, const Ranks& ranks) {
  Seen seen;
  const PredictionRequest request{
      .files = {},
      .batch_size = batch_size,
      .marks_problems = true,
      .format =
          [](int64_t sample, const Prediction& prediction) {
            return std::to_string(sample) + "=" +
                   std::to_string(std::get<int64_t>(prediction.front().second));
          },
      .format_problem = [](int64_t, const std::string& problem) { return problem; },
      .done = [](const PredictionSource&) { return int64_t{0}; },
      .take =
          [&](const std::vector<std::string>& some) {
            seen.texts.insert(seen.texts.end(), some.begin(), some.end());
          }};
  predict_in_rounds(source, request, ranks, [&](Batch& batch, bool) {
    ++seen.computed;
    require(!batch.sample_numbers.empty(), "a batch that is computed has a sample");
    Predictions predictions;
    for (const int64_t number : batch.sample_numbers) predictions.push_back({{"is", number}});
    return predictions;
  });
  return seen;
}

class PredictionsOnRanks : public ::testing::TestWithParam<int64_t> {};

TEST_P(PredictionsOnRanks, AreThoseOfOneRankWhateverTheSamplesAndBatches) {
  const auto outcome = in_ranks(GetParam(), [](World& world) {
    for (int64_t samples = 0; samples < 10; ++samples) {
      for (const int64_t batch_size : {1, 2, 3, 4, 8}) {
        for (const bool are_broken : {false, true}) {
          const SomeBroken source(samples, are_broken);
          const std::string what = std::to_string(samples) + " samples, batches of " +
                                   std::to_string(batch_size) + (are_broken ? ", some broken" : "");
          const Seen alone = predicted(source, batch_size, Ranks());
          const Seen together = predicted(source, batch_size, world.ranks());
          require(!world.ranks().is_first() || together.texts == alone.texts, what);
          // A model that lies on several ranks is called by all of them, or none.
          const auto computed = world.ranks().all_gather(std::to_string(together.computed));
          require(
              std::ranges::all_of(computed, [&](const auto& each) { return each == computed[0]; }),
              "as often on each rank, " + what);
        }
      }
    }
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

INSTANTIATE_TEST_SUITE_P(Ranks, PredictionsOnRanks, ::testing::Range<int64_t>(1, 5));

}  // namespace
}  // namespace phalanx
