// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/pair_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "tests/trainer/data/text_folder.h"
#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/data/loader.h"
#include "trainer/data/pairs/answer_samples.h"
#include "trainer/data/pairs/sequence_pairs.h"
#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kEnd = 0;

PairsConfig config_of(const std::filesystem::path& file) {
  PairsConfig config;
  config.files = {file};
  config.validation_fraction = 0;
  config.input = "{q}";
  config.target = "{a}";
  return config;
}

std::string line(const std::string& question, const std::string& answer) {
  return nlohmann::json{{"q", question}, {"a", answer}}.dump() + "\n";
}

std::shared_ptr<const TextPairs> open(const PairsConfig& config, Phase phase = Phase::train) {
  return open_pairs(config, phase, std::make_shared<ByteTokenizer>()).pairs;
}

SequencePairs sequences(const PairsConfig& config, int64_t input = 16, int64_t target = 16) {
  return {open(config), {.input_length = input, .target_length = target, .end_of_text = kEnd}};
}

AnswerSamples answers(const PairsConfig& config, int64_t length = 16) {
  return {open(config), {.sequence_length = length, .end_of_text = kEnd}};
}

template <class BatchT>
std::unique_ptr<BatchT> batch_of(const Dataset& samples, const std::vector<int64_t>& indices) {
  return std::unique_ptr<BatchT>(static_cast<BatchT*>(samples.batch(indices).release()));
}

template <class Error, class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SequencePairs, EndBothTextsAndFillThemUp) {
  const TextFolder folder;
  auto config = config_of(folder.write("a.jsonl", line("ab", "c") + line("d", "efg")));
  config.input = "!{q}";
  const auto batch = batch_of<SequencePairBatch>(sequences(config), {0, 1});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre('!', 'a', 'b', 0, '!', 'd', 0, 0));
  EXPECT_THAT(numbers_in(batch->targets),
              ElementsAre('c', 0, kNoTarget, kNoTarget, 'e', 'f', 'g', 0));
  EXPECT_THAT(numbers_in(batch->mask.to(at::kLong)), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0));
  EXPECT_EQ(batch->samples, 2);
  EXPECT_EQ(batch->tokens, 6);
  EXPECT_EQ(batch->tensors().size(), 3u);
  EXPECT_FALSE(batch_of<SequencePairBatch>(sequences(config), {1})->mask.defined());
}

TEST(SequencePairs, AreCutBeforeTheEndOfTextOrRefused) {
  const TextFolder folder;
  auto config = config_of(folder.write("a.jsonl", line("abcdef", "ghi") + line("a", "b")));
  const auto samples = sequences(config, 4, 3);
  const auto batch = batch_of<SequencePairBatch>(samples, {0});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre('a', 'b', 'c', 0));
  EXPECT_THAT(numbers_in(batch->targets), ElementsAre('g', 'h', 0));
  EXPECT_TRUE(samples.is_cut(0));
  EXPECT_FALSE(samples.is_cut(1));
  EXPECT_EQ(look_at_pairs(samples, false).cut, 1);
  config.too_long = TooLong::broken;
  const auto strict = sequences(config, 4, 3);
  EXPECT_THAT(error_of<BrokenSampleError>([&] { strict.is_cut(0); }),
              AllOf(HasSubstr("a.jsonl', line 1: the input has 6 tokens, and 3 fit")));
  EXPECT_THROW(look_at_pairs(strict, false), UserError);
  EXPECT_EQ(look_at_pairs(strict, true).looked_at, 1);
}

TEST(AnswerSamples, LearnTheAnswerAndItsEndAlone) {
  const TextFolder folder;
  const auto samples =
      answers(config_of(folder.write("a.jsonl", line("abc", "de") + line("f", "g"))));
  const auto batch = batch_of<TokenBatch>(samples, {0, 1});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre('a', 'b', 'c', 'd', 'e', 'f', 'g', 0, 0, 0));
  EXPECT_THAT(numbers_in(batch->targets), ElementsAre(kNoTarget, kNoTarget, 'd', 'e', 0, 'g', 0,
                                                      kNoTarget, kNoTarget, kNoTarget));
  EXPECT_EQ(batch->tokens, 5);
  EXPECT_FALSE(batch->positions.defined());
}

TEST(AnswerSamples, LoseTheirEndAndAreBrokenWhereNoAnswerIsLeft) {
  const TextFolder folder;
  const auto config = config_of(folder.write("a.jsonl", line("abc", "def") + line("", "x")));
  const auto batch = batch_of<TokenBatch>(answers(config, 4), {0});
  EXPECT_THAT(numbers_in(batch->inputs), ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(numbers_in(batch->targets), ElementsAre(kNoTarget, kNoTarget, 'd', 'e'));
  EXPECT_EQ(batch->tokens, 2);
  EXPECT_EQ(batch_of<TokenBatch>(answers(config, 3), {0})->tokens, 1);
  EXPECT_THAT(error_of<BrokenSampleError>([&] { answers(config, 2).is_cut(0); }),
              HasSubstr("line 1: the input has 3 tokens, so that no target is left of 2"));
  // Without a prompt the answer's first token has nothing before it.
  EXPECT_THAT(numbers_in(batch_of<TokenBatch>(answers(config), {1})->inputs), ElementsAre('x'));
}

TEST(PairSamples, AreNamedByTheirUse) {
  const std::vector<std::filesystem::path> files{"a.jsonl", "b.jsonl"};
  EXPECT_EQ(use_of_pairs(Phase::train, {}), "training");
  EXPECT_EQ(use_of_pairs(Phase::validate, {}), "validation");
  EXPECT_EQ(use_of_pairs(Phase::validate, std::span(files).first(1)), "validation on 'a.jsonl'");
  EXPECT_EQ(use_of_pairs(Phase::validate, files), "validation on 'a.jsonl', ...");
}

TEST(PairSamples, NameALineWithoutTheFieldsOfAPair) {
  const TextFolder folder;
  const auto config = config_of(folder.write("a.jsonl", line("a", "b") + "{\"q\": \"c\"}\n"));
  EXPECT_THAT(error_of<BrokenSampleError>([&] { sequences(config).is_cut(1); }),
              HasSubstr("a.jsonl', line 2: the line has no field 'a': its fields are 'q'"));
  EXPECT_THAT(error_of<UserError>([&] { look_at_pairs(sequences(config), false); }),
              HasSubstr("line 2"));
}

TEST(PairSamples, KeepTheLastOnesForValidation) {
  const TextFolder folder;
  auto config =
      config_of(folder.write("a.jsonl", line("a", "1") + line("b", "2") + line("c", "3")));
  EXPECT_EQ(open(config)->size(), 3);
  EXPECT_EQ(open(config, Phase::validate), nullptr);
  config.validation_fraction = 0.4;
  EXPECT_EQ(open(config)->size(), 2);
  ASSERT_EQ(open(config, Phase::validate)->size(), 1);
  EXPECT_THAT(open(config, Phase::validate)->tokens(0).input, ElementsAre('c'));
  EXPECT_NE(open(config, Phase::validate)->fingerprint(), open(config)->fingerprint());
  config.validation_fraction = 0.1;
  EXPECT_THAT(error_of<UserError>([&] { open(config, Phase::validate); }),
              HasSubstr("validation_fraction (0.1) of 3 pairs is none"));
  config.validation_files = {folder.write("v.jsonl", line("v", "4"))};
  EXPECT_EQ(open(config)->size(), 3);
  EXPECT_THAT(open(config, Phase::validate)->tokens(0).input, ElementsAre('v'));
}

// The inputs of a phase's global batches of 6, on some ranks.
std::vector<std::vector<int64_t>> global_batches(const std::shared_ptr<const Dataset>& samples,
                                                 int64_t world_size, int64_t workers,
                                                 int64_t consumed) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    const auto source = load(
        samples, {.sort_window = 12, .num_workers = workers},
        {.batch_size = 6 / world_size, .rank = rank, .world_size = world_size, .seed = 5}, true);
    source->start_epoch(1, consumed);
    for (size_t number = 0; const auto batch = source->next(); ++number) {
      if (!batch->counts) continue;
      batches.resize(std::max(batches.size(), number + 1));
      const auto& inputs = static_cast<const SequencePairBatch&>(*batch).inputs;
      for (const int64_t token : numbers_in(inputs.select(1, 0).contiguous())) {
        batches[number].push_back(token);
      }
    }
  }
  for (auto& batch : batches) std::sort(batch.begin(), batch.end());
  return batches;
}

TEST(PairSamples, AreOneSequenceOfBatchesAtAnyWorldSizeAndAfterAResume) {
  const TextFolder folder;
  std::string text;
  for (int i = 0; i < 64; ++i) {
    text += line(std::string(1, static_cast<char>(' ' + i)) + std::string(i * 7 % 13, 'x'), "y");
  }
  const auto samples =
      std::make_shared<SequencePairs>(sequences(config_of(folder.write("a.jsonl", text))));
  const auto expected = global_batches(samples, 1, 0, 0);
  ASSERT_EQ(expected.size(), 11u);
  EXPECT_EQ(global_batches(samples, 2, 1, 0), expected);
  EXPECT_EQ(global_batches(samples, 3, 2, 0), expected);
  EXPECT_EQ(global_batches(samples, 2, 1, 18), std::vector(expected.begin() + 3, expected.end()));
}

}  // namespace
}  // namespace phalanx
