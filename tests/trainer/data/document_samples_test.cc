// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/document_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "trainer/data/loader.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

std::shared_ptr<const TokenSet> numbers(int64_t count, std::vector<DocumentBegin> documents) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return std::make_shared<StoredNumbers>(std::move(tokens), std::move(documents));
}

std::unique_ptr<TokenBatch> batch_of(const DocumentSamples& samples,
                                     const std::vector<int64_t>& indices) {
  auto batch = samples.batch(indices);
  return std::unique_ptr<TokenBatch>(static_cast<TokenBatch*>(batch.release()));
}

TEST(DocumentSamples, EachDocumentIsASampleFilledUpToTheLongest) {
  const DocumentSamples samples({{numbers(9, {{0}, {3}, {4}}), 0, 9}}, 8);
  ASSERT_EQ(samples.size(), 2);  // The document [3] has nothing to predict.
  EXPECT_EQ(samples.length(0), 2);
  EXPECT_EQ(samples.length(1), 4);
  const auto batch = batch_of(samples, {1, 0});
  EXPECT_EQ(batch->inputs.sizes(), at::IntArrayRef({2, 4}));
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre(4, 5, 6, 7, 0, 1, 0, 0));
  EXPECT_THAT(numbers_in(batch->targets), ElementsAre(5, 6, 7, 8, 1, 2, kNoTarget, kNoTarget));
  EXPECT_EQ(batch->samples, 2);
  EXPECT_EQ(batch->tokens, 6);
  EXPECT_FALSE(batch->positions.defined());
}

TEST(DocumentSamples, CutsALongDocumentAsBlocksAreCut) {
  const DocumentSamples samples({{numbers(8, {{0}}), 0, 8}}, 3);
  ASSERT_EQ(samples.size(), 3);
  const auto batch = batch_of(samples, {0, 1, 2});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre(0, 1, 2, 3, 4, 5, 6, 0, 0));
  EXPECT_THAT(numbers_in(batch->targets), ElementsAre(1, 2, 3, 4, 5, 6, 7, kNoTarget, kNoTarget));
  EXPECT_EQ(batch->tokens, 7);
}

TEST(DocumentSamples, AnEndOfTextTokenThatBeginsADocumentEndsTheOneBefore) {
  const DocumentSamples samples({{numbers(6, {{0, true}, {2, true}, {3, true}}), 0, 6}}, 8);
  const auto batch = batch_of(samples, {0, 1, 2});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre(0, 1, 2, 0, 3, 4));
  EXPECT_THAT(numbers_in(batch->targets), ElementsAre(1, 2, 3, kNoTarget, 4, 5));
  EXPECT_EQ(batch->tokens, 5);
}

TEST(DocumentSamples, ARangeMayBeginInTheMidstOfADocument) {
  const auto tokens = numbers(10, {{0}, {5}});
  const DocumentSamples samples({{tokens, 0, 3}, {tokens, 3, 10}}, 8);
  EXPECT_THAT(samples.samples_by_span(), ElementsAre(1, 2));
  EXPECT_THAT(samples.targets_by_span(), ElementsAre(2, 1 + 4));
  const auto batch = batch_of(samples, {0, 1, 2});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre(0, 1, 0, 0, 3, 0, 0, 0, 5, 6, 7, 8));
}

TEST(DocumentSamples, MayHaveNone) {
  const DocumentSamples samples({{numbers(3, {{0}, {1}, {2}}), 0, 3}}, 8);
  EXPECT_EQ(samples.size(), 0);
  EXPECT_THAT(samples.samples_by_span(), ElementsAre(0));
  EXPECT_THROW(DocumentSamples({}, 8), std::invalid_argument);
  EXPECT_THROW(DocumentSamples({{numbers(3, {}), 0, 4}}, 8), std::invalid_argument);
}

TEST(DocumentSamples, NamesATokenThatTheModelDoesNotKnow) {
  const DocumentSamples samples({{numbers(9, {{0}, {4}}), 0, 9}}, 8, 8);
  EXPECT_NO_THROW(batch_of(samples, {0}));
  EXPECT_THROW(batch_of(samples, {1}), std::runtime_error);
}

// Property: every pair of neighbours in a document is trained on once.
TEST(DocumentSamples, HaveEveryTargetOnce) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const auto count = static_cast<int64_t>(1 + random() % 80);
    std::vector<DocumentBegin> documents;
    std::vector<int64_t> expected;
    for (int64_t place = 0; place < count; ++place) {
      const bool begins = random() % 6 == 0;
      const bool is_end_of_text = random() % 2 == 0;
      if (begins) documents.push_back({place, is_end_of_text});
      if (place > 0 && (!begins || is_end_of_text)) expected.push_back(place);
    }
    const DocumentSamples samples({{numbers(count, documents), 0, count}},
                                  static_cast<int64_t>(1 + random() % 9));
    std::vector<int64_t> targets;
    for (int64_t sample = 0; sample < samples.size(); ++sample) {
      const auto batch = batch_of(samples, {sample});
      EXPECT_EQ(batch->tokens, samples.length(sample));
      for (const int64_t target : numbers_in(batch->targets)) targets.push_back(target);
      const auto inputs = numbers_in(batch->inputs);
      for (size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(inputs[i] + 1, numbers_in(batch->targets)[i]);
      }
    }
    EXPECT_EQ(targets, expected);
  }
}

std::shared_ptr<const DocumentSamples> many_documents() {
  std::mt19937 random(7);
  std::vector<DocumentBegin> documents;
  for (int64_t place = 0; place < 20000; place += 2 + static_cast<int64_t>(random() % 60)) {
    documents.push_back({place});
  }
  return std::make_shared<DocumentSamples>(
      std::vector<TokenSpan>{{numbers(20000, documents), 0, 20000}}, 64);
}

// The first tokens of the samples of an epoch's rest, global batch by global batch, each sorted.
std::vector<std::vector<int64_t>> global_batches(const std::shared_ptr<const Dataset>& samples,
                                                 int64_t world_size, int64_t consumed) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    const auto source = load(
        samples, {.num_workers = rank},
        {.batch_size = 24 / world_size, .rank = rank, .world_size = world_size, .seed = 11}, true);
    source->start_epoch(1, consumed);
    for (size_t number = 0; const auto batch = source->next(); ++number) {
      if (!batch->counts) continue;
      batches.resize(std::max(batches.size(), number + 1));
      const at::Tensor first = static_cast<const TokenBatch&>(*batch).inputs.select(1, 0);
      for (const int64_t token : numbers_in(first.contiguous())) batches[number].push_back(token);
    }
  }
  for (auto& batch : batches) std::sort(batch.begin(), batch.end());
  return batches;
}

TEST(DocumentSamples, AreOneSequenceOfBatchesAtAnyWorldSizeAndAfterAResume) {
  const auto samples = many_documents();
  const auto expected = global_batches(samples, 1, 0);
  ASSERT_GT(expected.size(), 20u);
  for (const int64_t world_size : {2, 3, 4, 8}) {
    EXPECT_EQ(global_batches(samples, world_size, 0), expected);
    for (size_t step = 10; step < expected.size(); step += 10) {
      const std::vector<std::vector<int64_t>> rest(expected.begin() + static_cast<int64_t>(step),
                                                   expected.end());
      EXPECT_EQ(global_batches(samples, world_size, static_cast<int64_t>(step) * 24), rest);
    }
  }
}

TEST(DocumentSamples, NeedLittlePaddingSideBySide) {
  const auto samples = many_documents();
  const auto padded_share = [&](int64_t window) {
    const auto source =
        load(samples, {.sort_window = window, .num_workers = 0}, {.batch_size = 16}, true);
    source->start_epoch(0, 0);
    int64_t places = 0;
    int64_t targets = 0;
    while (const auto batch = source->next()) {
      places += static_cast<const TokenBatch&>(*batch).inputs.numel();
      targets += batch->tokens;
    }
    return 1 - static_cast<double>(targets) / static_cast<double>(places);
  };
  EXPECT_GT(padded_share(1), 0.3);
  EXPECT_LT(padded_share(1024), 0.05);
}

}  // namespace
}  // namespace phalanx
