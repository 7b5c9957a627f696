// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/known_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/data/loader.h"
#include "trainer/data/padded_rows.h"
#include "trainer/data/sequence_pair_batch.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

using Rows = std::vector<std::vector<int64_t>>;

Rows rows_at(const Rows& rows, std::span<const int64_t> indices) {
  Rows found;
  for (const int64_t index : indices) found.push_back(rows.at(static_cast<size_t>(index)));
  return found;
}

/// Samples of a user's own: given inputs and targets.
template <class BatchOfTokens>
class Samples : public Dataset {
 public:
  Samples(Rows inputs, Rows targets) : inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  int64_t size() const override { return static_cast<int64_t>(inputs_.size()); }
  std::string fingerprint() const override { return "samples"; }
  std::optional<int64_t> length(int64_t index) const override { return index; }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    auto batch = std::make_unique<BatchOfTokens>();
    batch->samples = batch->tokens = static_cast<int64_t>(indices.size());
    batch->inputs = padded_rows(rows_at(inputs_, indices), 0);
    batch->targets = padded_rows(rows_at(targets_, indices), kNoTarget);
    return batch;
  }
  std::shared_ptr<const Dataset> of_epoch(int64_t epoch,
                                          std::optional<uint64_t> /*seed*/) const override {
    if (epoch == 0) return nullptr;
    return std::make_shared<Samples>(inputs_, targets_);
  }

 private:
  Rows inputs_;
  Rows targets_;
};

std::shared_ptr<const Dataset> known(Rows inputs, Rows targets, int64_t vocabulary_size) {
  return known_tokens(std::make_shared<Samples<TokenBatch>>(std::move(inputs), std::move(targets)),
                      vocabulary_size);
}

template <class Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const BrokenSampleError& error) {
    EXPECT_EQ(error.sample().kind, "a token beyond the vocabulary");
    return error.what();
  }
  return "none";
}

std::string refusal_of(const Dataset& samples, std::vector<int64_t> indices) {
  return refusal_of([&] { samples.batch(indices); });
}

TEST(KnownTokens, AreThoseBelowTheVocabulary) {
  const auto samples = known({{0, 1, 9}}, {{1, kNoTarget, 9}}, 10);
  EXPECT_EQ(refusal_of(*samples, {0}), "none");
  EXPECT_EQ(samples->size(), 1);
  EXPECT_EQ(samples->fingerprint(), "samples");
  EXPECT_EQ(samples->length(7), 7);
}

TEST(KnownTokens, NameTheSampleThePlaceAndTheVocabulary) {
  const auto inputs = known({{1, 2}, {3, 4}, {5, 10}}, {{1}, {1}, {1}}, 10);
  EXPECT_EQ(refusal_of(*inputs, {1, 2}),
            "sample 2: token 1 of the input is 10, but the model knows only tokens below 10");
  EXPECT_EQ(refusal_of(*inputs, {0, 1}), "none");
  const auto targets = known({{1}, {2}}, {{1, 2, 12}, {3}}, 12);
  EXPECT_EQ(refusal_of(*targets, {1, 0}),
            "sample 0: token 2 of the target is 12, but the model knows only tokens below 12");
}

TEST(KnownTokens, AreNotNegative) {
  EXPECT_THAT(refusal_of(*known({{-1}}, {{1}}, 10), {0}), HasSubstr("of the input is -1"));
  EXPECT_THAT(refusal_of(*known({{kNoTarget}}, {{1}}, 10), {0}), HasSubstr("of the input is -100"));
  EXPECT_THAT(refusal_of(*known({{1}}, {{-99}}, 10), {0}), HasSubstr("of the target is -99"));
}

TEST(KnownTokens, AreThoseOfPairsToo) {
  const auto samples = known_tokens(
      std::make_shared<Samples<SequencePairBatch>>(Rows{{1, 2, 3}, {4}}, Rows{{5}, {6, 20}}), 20);
  EXPECT_EQ(refusal_of(*samples, {0}), "none");
  EXPECT_EQ(refusal_of(*samples, {0, 1}),
            "sample 1: token 1 of the target is 20, but the model knows only tokens below 20");
}

TEST(KnownTokens, AreThoseOfEveryEpoch) {
  const auto samples = known({{10}}, {{1}}, 10);
  EXPECT_EQ(samples->of_epoch(0, {}), nullptr) << "the same in each";
  EXPECT_NE(refusal_of(*samples->of_epoch(1, {}), {0}), "none");
}

TEST(KnownTokens, ALoaderLeavesOutWhatHasOthers) {
  LoaderConfig config;
  config.shuffle = false;
  config.sort_window = 1;
  BatchRequest request;
  request.batch_size = 3;
  const auto samples = known({{1}, {11}, {2}}, {{1}, {1}, {1}}, 10);
  const auto refused = load(samples, config, request, true);
  refused->start_epoch(0, 0);
  EXPECT_NE(refusal_of([&] { refused->next(); }), "none");
  config.max_broken = 1;
  const auto source = load(samples, config, request, true);
  source->start_epoch(0, 0);
  const auto batch = source->next();
  EXPECT_EQ(batch->samples, 2);
  ASSERT_EQ(batch->broken.size(), 1U);
  EXPECT_THAT(batch->broken.front().message, HasSubstr("sample 1: token 0 of the input is 11"));
}

}  // namespace
}  // namespace phalanx
