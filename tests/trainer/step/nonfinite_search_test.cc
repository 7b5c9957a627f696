// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/nonfinite_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/step/tiny_step.h"
#include "trainer/api/training_step.h"
#include "trainer/step/repeated_step.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Rows : Samples {
  explicit Rows(const std::vector<int64_t>& numbers) {
    samples = tokens = static_cast<int64_t>(numbers.size());
    sample_numbers = numbers;
    values = tensors::ones({samples, 1});
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 5) values[static_cast<int64_t>(i)].fill_(kNan);
    }
  }
  std::vector<at::Tensor*> tensors() override { return {&values}; }
  std::vector<std::string_view> tensor_names() const override { return {"values"}; }

  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor values;
};

/// Samples of which number 5 is NaN, and number 9 cannot be read.
class Numbers : public KnownSamples {
 public:
  std::unique_ptr<Batch> read_again(std::span<const int64_t> samples) const override {
    for (const int64_t sample : samples) {
      if (sample == 9) throw std::runtime_error("a file is gone");
    }
    return std::make_unique<Rows>(std::vector<int64_t>(samples.begin(), samples.end()));
  }
};

TEST(NonfiniteSearch, NamesTheSampleOfAMicroBatch) {
  TinyStep step;
  const Numbers numbers;
  const NonfiniteSearch search(step.context, numbers);
  std::vector<std::unique_ptr<Batch>> batches;
  batches.push_back(std::make_unique<Rows>(std::vector<int64_t>{1, 2}));
  batches.push_back(std::make_unique<Rows>(std::vector<int64_t>{4, 5}));
  EXPECT_THAT(search.origin_of(batches).data, AllOf(HasSubstr("5"), HasSubstr("values")));
  batches.back()->counts = false;
  batches.erase(batches.begin());
  EXPECT_THAT(search.origin_of(batches).data, IsEmpty()) << "it does not count";
}

TEST(NonfiniteSearch, ReadsSamplesAgain) {
  TinyStep step;
  const Numbers numbers;
  const NonfiniteSearch search(step.context, numbers);
  const std::vector<std::vector<int64_t>> samples{{1, 2}, {4, 5}};
  EXPECT_THAT(search.origin_of_samples(samples).data, HasSubstr("5"));
  const std::vector<std::vector<int64_t>> unreadable{{9}, {5}};
  EXPECT_THAT(search.origin_of_samples(unreadable).data, IsEmpty());
}

/// Runs its steps by itself, and counts on their micro-batches.
class OwnSteps : public Regression {
 public:
  void training_step(TrainingStep& step, Regressor&) override {
    numbers.push_back(step.micro_batches().size());
  }
  Loss compute_loss(Regressor&, const Samples&, const State&) override {
    return tensors::full({}, 1.0);
  }

  std::vector<size_t> numbers;  ///< Of the micro-batches of each step.
};

TEST(NonfiniteSearch, RepeatsATasksOwnStepWithAllItsMicroBatchesOrNotAtAll) {
  const auto task = std::make_shared<OwnSteps>();
  TinyStep step({.task = task});
  const Numbers numbers;
  const NonfiniteSearch search(step.context, numbers);
  using All = std::vector<std::vector<int64_t>>;
  search.origin_of_samples(All{{1, 2}, {3, 4}});
  EXPECT_THAT(task->numbers, ElementsAre(2));
  search.origin_of_samples(All{{1, 2}, {9}});
  search.origin_of_samples(All{{1, 2}, {}});
  EXPECT_THAT(task->numbers, ElementsAre(2)) << "one cannot be read, or does not count";
}

/// Runs passes until updates have changed what they give, or until there are very many.
class UntilMoved : public OwnSteps {
 public:
  void training_step(TrainingStep& step, Regressor&) override {
    while (passes < kVeryMany) {
      step.run([&] {
        ++passes;
        return std::vector{tensors::full({}, 1.0)};
      });
      step.update();
    }
  }

  static constexpr size_t kVeryMany = 1000;
  size_t passes = 0;
};

TEST(NonfiniteSearch, EndsAStepThatWaitsForItsUpdates) {
  const auto task = std::make_shared<UntilMoved>();
  TinyStep step({.task = task});
  const Numbers numbers;
  const NonfiniteSearch search(step.context, numbers);
  search.origin_of_samples(std::vector<std::vector<int64_t>>{{1, 2}, {3, 4}});
  EXPECT_EQ(task->passes, 2 * RepeatedStep::kMostPasses);
}

}  // namespace
}  // namespace phalanx::tiny
