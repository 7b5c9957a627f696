// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/prediction_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

struct Numbers : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }
  std::vector<int64_t> numbers;
};

/// Samples 0, 1, 2, ..., of which some cannot be read.
class Source : public PredictionSource {
 public:
  Source(int64_t samples, std::set<int64_t> broken)
      : samples_(samples), broken_(std::move(broken)) {}

  int64_t samples() const override { return samples_; }
  std::string fingerprint() const override { return "numbers"; }

  PredictionBatch batch(int64_t begin, int64_t end) const override {
    auto batch = std::make_unique<Numbers>();
    PredictionBatch made{.batch = nullptr, .problems = {}};
    for (int64_t i = begin; i < end; ++i) {
      if (broken_.contains(i)) {
        made.problems.emplace_back("cannot read " + std::to_string(i));
      } else {
        made.problems.emplace_back();
        batch->numbers.push_back(i);
      }
    }
    if (!batch->numbers.empty()) made.batch = std::move(batch);
    return made;
  }

 private:
  int64_t samples_;
  std::set<int64_t> broken_;
};

struct Found {
  std::vector<std::string> texts;
  std::vector<std::vector<int64_t>> batches;
};

Found predicted(const Source& source, int64_t batch_size, int64_t done, bool marks_problems) {
  Found run;
  const PredictionRequest request{
      .files = {},
      .batch_size = batch_size,
      .marks_problems = marks_problems,
      .format =
          [](int64_t sample, const Prediction& prediction) {
            return std::to_string(sample) + "=" +
                   std::to_string(std::get<int64_t>(prediction.front().second));
          },
      .format_problem = [](int64_t, const std::string& problem) { return problem; },
      .done = [&](const PredictionSource&) { return done; },
      .take =
          [&](const std::vector<std::string>& texts) {
            run.texts.insert(run.texts.end(), texts.begin(), texts.end());
          }};
  predict_in_rounds(source, request, Ranks(), [&](Batch& batch, bool is_asked_for) {
    EXPECT_TRUE(is_asked_for);
    Predictions predictions;
    run.batches.push_back(static_cast<Numbers&>(batch).numbers);
    for (const int64_t number : run.batches.back())
      predictions.push_back({{"square", number * number}});
    return predictions;
  });
  return run;
}

TEST(PredictionRounds, TakeSamplesInOrder) {
  const Found run = predicted(Source(5, {}), 2, 0, false);
  EXPECT_EQ(run.texts, (std::vector<std::string>{"0=0", "1=1", "2=4", "3=9", "4=16"}));
  EXPECT_EQ(run.batches, (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}, {4}}));
}

TEST(PredictionRounds, GoOnBehindWhatIsDone) {
  EXPECT_EQ(predicted(Source(5, {}), 2, 2, false).texts,
            (std::vector<std::string>{"2=4", "3=9", "4=16"}));
  EXPECT_TRUE(predicted(Source(5, {}), 2, 5, false).texts.empty());
}

TEST(PredictionRounds, MarkOrRefuseWhatCannotBeRead) {
  const Source source(5, {1, 2, 3});
  EXPECT_EQ(
      predicted(source, 2, 0, true).texts,
      (std::vector<std::string>{"0=0", "cannot read 1", "cannot read 2", "cannot read 3", "4=16"}));
  EXPECT_THAT([&] { predicted(source, 2, 0, false); },
              ::testing::ThrowsMessage<UserError>("cannot read 1"));
}

}  // namespace
}  // namespace phalanx
