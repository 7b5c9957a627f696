// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/read_batch.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

struct Rows : Batch {
  std::vector<at::Tensor*> tensors() override { return {&rows}; }

  at::Tensor rows;
};

/// Lines of a file, each with as many fields as `widths` says; one with fewer than none is no line.
class Lines : public Dataset {
 public:
  explicit Lines(std::vector<int64_t> widths) : widths_(std::move(widths)) {}

  int64_t size() const override { return static_cast<int64_t>(widths_.size()); }
  std::string fingerprint() const override { return "lines"; }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    throw BrokenSampleError(
        {.source = "a.csv",
         .kind = kind,
         .message = "'a.csv', line " + std::to_string(index + 1) + ": " + problem});
  }

  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    std::vector<at::Tensor> rows;
    for (const int64_t index : indices) {
      const int64_t width = widths_.at(static_cast<size_t>(index));
      if (width == kUsers) throw UserError("the user's mistake");
      if (width == kBroken) fail(index, "broken", "it is broken");
      if (width == kNoNumber) std::stod("no number");
      rows.push_back(at::zeros({width}));
    }
    auto batch = std::make_unique<Rows>();
    batch->rows = at::stack(rows);
    return batch;
  }

  static constexpr int64_t kUsers = -2;
  static constexpr int64_t kBroken = -3;
  static constexpr int64_t kNoNumber = -4;

 private:
  std::vector<int64_t> widths_;
};

std::function<void()> reading(std::vector<int64_t> widths) {
  return [widths = std::move(widths)] {
    std::vector<int64_t> all;
    for (size_t i = 0; i < widths.size(); ++i) all.push_back(static_cast<int64_t>(i));
    read_batch(Lines(widths), all);
  };
}

TEST(ReadBatch, KnowsItsSamples) {
  const auto batch = read_batch(Lines({2, 2, 2}), std::vector<int64_t>{2, 0});
  EXPECT_EQ(batch->sample_numbers, (std::vector<int64_t>{2, 0}));
}

TEST(ReadBatch, NamesTheSampleThatCannotBeMade) {
  EXPECT_THAT(reading({4, -1, 4}), ThrowsMessage<std::runtime_error>(AllOf(
                                       HasSubstr("'a.csv', line 2: "), HasSubstr("negative"))));
  EXPECT_THAT(reading({4, 4, Lines::kNoNumber}),
              ThrowsMessage<std::runtime_error>("'a.csv', line 3: stod"));
}

TEST(ReadBatch, NamesTheSamplesThatDoNotFitTogether) {
  EXPECT_THAT(reading({4, 4, 5}),
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("stack expects each tensor to be equal size"),
                        HasSubstr("'a.csv', line 1: is one of them"),
                        HasSubstr("'a.csv', line 3: is one of them"), Not(HasSubstr("more")))));
  EXPECT_THAT(reading({4, 4, 4, 4, 4, 5}),
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("line 4: is one of them"), HasSubstr("and 2 more"))));
}

TEST(ReadBatch, LeavesErrorsThatNameAPlace) {
  EXPECT_THAT(reading({4, Lines::kUsers}), ThrowsMessage<UserError>("the user's mistake"));
  EXPECT_THAT(reading({4, Lines::kBroken}),
              ThrowsMessage<BrokenSampleError>("'a.csv', line 2: it is broken"));
}

}  // namespace
}  // namespace phalanx
