// SPDX-License-Identifier: Apache-2.0
// Predictions that several ranks make.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
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

}  // namespace
}  // namespace phalanx
