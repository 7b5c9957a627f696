// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/trainer/loop/tiny.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::unique_ptr<Batch> batch_of(std::vector<int64_t> numbers, bool counts) {
  auto batch = std::make_unique<Samples>();
  batch->sample_numbers = std::move(numbers);
  batch->counts = counts;
  return batch;
}

TEST(StepSamples, AreThoseOfEachMicroBatchThatCounts) {
  std::vector<std::unique_ptr<Batch>> batches;
  batches.push_back(batch_of({3, 18}, true));
  batches.push_back(batch_of({3}, false));
  batches.push_back(batch_of({7}, true));
  const auto numbers = numbers_of(batches);
  EXPECT_THAT(numbers, ElementsAre(ElementsAre(3, 18), IsEmpty(), ElementsAre(7)))
      << "each keeps its place";
  EXPECT_EQ(samples_text(numbers), "samples 3, 18, 7");
}

TEST(StepSamples, AreNamedUpToEight) {
  using All = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(samples_text(All{}), "");
  EXPECT_EQ(samples_text(All{{5}}), "sample 5");
  EXPECT_EQ(samples_text(All{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}}),
            "samples 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

}  // namespace
}  // namespace phalanx::tiny
