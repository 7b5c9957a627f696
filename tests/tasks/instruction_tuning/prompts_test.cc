// SPDX-License-Identifier: Apache-2.0
#include "tasks/instruction_tuning/prompts.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/api/broken_sample.h"
#include "trainer/data/pairs/answer_samples.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kEnd = 256;

std::vector<int32_t> tokens_of(const std::string& text) { return {text.begin(), text.end()}; }

PairsConfig pairs_of(const TextFolder& folder, const std::string& lines) {
  PairsConfig config;
  config.files = {folder.write("a.jsonl", lines)};
  config.input = ">{q}";
  config.target = "{a}";
  config.validation_fraction = 0;
  return config;
}

Prompts prompts_of(const PairsConfig& config, int64_t sequence_length) {
  return {
      InputTexts({config.files.front()}, load_tokenizer("tokenizer", "bytes").tokenizer, config),
      {.sequence_length = sequence_length, .end_of_text = kEnd}};
}

constexpr const char* kLines = "{\"q\": \"ab\", \"a\": \"xyz\"}\n{\"q\": \"cdef\", \"a\": \"z\"}\n";

TEST(Prompts, AreGivenBackWithTheirNumbers) {
  const TextFolder folder;
  const Prompts prompts = prompts_of(pairs_of(folder, kLines), 8);
  const std::vector<int64_t> numbers{1, 0};
  const auto batch = prompts.batch(numbers);
  batch->sample_numbers = numbers;  // As the loader does.
  const auto samples = prompts_and_answers(dynamic_cast<const TokenBatch&>(*batch), kEnd);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].prompt.tokens, tokens_of(">cdef"));
  EXPECT_EQ(samples[0].prompt.number, 1);
  EXPECT_EQ(samples[1].prompt.tokens, tokens_of(">ab"));
  EXPECT_EQ(samples[1].prompt.number, 0);
  EXPECT_TRUE(samples[0].answer.empty());
}

TEST(Prompts, OfTrainingComeWithTheirAnswers) {
  const TextFolder folder;
  const auto config = pairs_of(folder, kLines);
  const auto tokenizer = load_tokenizer("tokenizer", "bytes").tokenizer;
  const auto samples_of = [&](int64_t sequence_length) {
    const AnswerSamples samples(open_pairs(config, Phase::train, tokenizer).pairs,
                                {.sequence_length = sequence_length, .end_of_text = kEnd});
    const auto batch = samples.batch(std::vector<int64_t>{0, 1});
    return prompts_and_answers(dynamic_cast<const TokenBatch&>(*batch), kEnd);
  };
  const auto whole = samples_of(8);
  EXPECT_EQ(whole[0].prompt.tokens, tokens_of(">ab"));
  EXPECT_EQ(whole[0].answer, tokens_of("xyz"));
  EXPECT_EQ(whole[1].prompt.tokens, tokens_of(">cdef"));
  EXPECT_EQ(whole[1].answer, tokens_of("z"));
  const auto cut = samples_of(5);
  EXPECT_EQ(cut[0].answer, tokens_of("xyz"));  // Without its end-of-text.
  EXPECT_EQ(cut[1].answer, tokens_of("z"));
}

TEST(Prompts, ThatAreTooLongOrEmptyAreCutOrRefused) {
  const TextFolder folder;
  PairsConfig config = pairs_of(folder, "{\"q\": \"abcdef\"}\n");
  config.too_long = TooLong::cut;
  const auto batch = prompts_of(config, 4).batch(std::vector<int64_t>{0});
  const auto samples = prompts_and_answers(dynamic_cast<const TokenBatch&>(*batch), kEnd);
  EXPECT_EQ(samples[0].prompt.tokens, tokens_of(">abc"));
  config.too_long = TooLong::broken;
  const auto error_of = [](const PairsConfig& asked) -> std::string {
    try {
      prompts_of(asked, 4).batch(std::vector<int64_t>{0});
    } catch (const BrokenSampleError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of(config), HasSubstr("a.jsonl', line 1: the input has 7 tokens, and 4 fit"));
  EXPECT_THAT(error_of(config), HasSubstr("raise task.data.sequence_length"));
  config = pairs_of(folder, "{\"q\": \"\"}\n");
  config.input = "{q}";
  EXPECT_THAT(error_of(config), HasSubstr("line 1: the prompt has no tokens"));
}

}  // namespace
}  // namespace phalanx
