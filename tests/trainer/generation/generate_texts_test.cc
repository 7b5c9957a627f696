// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/generate_texts.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tasks/language_modeling/bigram.h"
#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

const ByteTokenizer kBytes;

/// Says "abcdeabcde...".
class Alphabet : public Bigram {
 public:
  Alphabet() : Bigram(256, 64) {
    const at::NoGradGuard no_grad;
    const std::string_view letters = "abcdea";
    for (size_t i = 0; i + 1 < letters.size(); ++i) {
      table().select(0, letters[i]).select(0, letters[i + 1]).fill_(50);
    }
  }
};

std::vector<GenerationInput> inputs_of(const std::vector<std::string>& prompts) {
  std::vector<GenerationInput> inputs;
  for (const auto& prompt : prompts) {
    inputs.push_back(
        {.tokens = encode(kBytes, prompt), .number = static_cast<int64_t>(inputs.size())});
  }
  return inputs;
}

TEST(GenerateTexts, StopsBeforeAText) {
  Alphabet model;
  GenerationConfig config;
  config.stop = {"dea", "zz"};
  for (const int64_t beams : {1, 2}) {
    config.num_beams = beams;
    const auto texts =
        generate_texts({.model = &model, .tokenizer = &kBytes}, inputs_of({"xa", "c"}), config);
    EXPECT_EQ(texts[0].text, "bc");
    EXPECT_EQ(texts[0].reason, FinishReason::stop);
    EXPECT_EQ(texts[1].text, "");
    EXPECT_EQ(texts[1].reason, FinishReason::stop);
  }
}

TEST(GenerateTexts, GivesOutEachTextAsItComes) {
  Alphabet model;
  GenerationConfig config;
  config.max_new_tokens = 6;
  config.stop = {"cx"};
  std::vector<std::string> given(2);
  const auto texts =
      generate_texts({.model = &model, .tokenizer = &kBytes}, inputs_of({"a", "c"}), config,
                     {.on_text = [&](size_t text, std::string_view part) { given[text] += part; }});
  EXPECT_EQ(given, (std::vector<std::string>{"bcdeab", "deabcd"}));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i].text, given[i]);
    EXPECT_EQ(texts[i].reason, FinishReason::length);
    EXPECT_EQ(texts[i].tokens.size(), 6U);
  }
}

TEST(GenerateTexts, WithoutATokenizerGivesTokens) {
  Alphabet model;
  GenerationConfig config;
  config.max_new_tokens = 3;
  const auto texts = generate_texts({.model = &model}, inputs_of({"a"}), config);
  EXPECT_EQ(texts[0].text, "");
  EXPECT_EQ(texts[0].tokens, (std::vector<int32_t>{'b', 'c', 'd'}));
}

TEST(GenerateTexts, TheTokenThatEndsATextMayLieBeyondTheTokenizers) {
  Bigram model(260, 64);
  {
    const at::NoGradGuard no_grad;
    model.table().select(0, 'a').select(0, 'b').fill_(50);
    model.table().select(0, 'b').select(0, 257).fill_(50);
    model.table().select(1, 256).fill_(100);  // A token that nobody knows.
    model.table().select(1, 259).fill_(100);
  }
  const TextModel writer{.model = &model, .tokenizer = &kBytes, .end_of_text = {257}};
  GenerationConfig config;
  for (const int64_t beams : {1, 2}) {
    config.num_beams = beams;
    const auto text = generate_texts(writer, inputs_of({"a"}), config)[0];
    EXPECT_EQ(text.text, "b");
    EXPECT_EQ(text.reason, FinishReason::eos);
  }
}

TEST(GenerateTexts, EndsAtTheModelsEndOfText) {
  Alphabet model;
  GenerationConfig config;
  const TextModel writer{.model = &model, .tokenizer = &kBytes, .end_of_text = {'e'}};
  EXPECT_EQ(generate_texts(writer, inputs_of({"a"}), config)[0].text, "bcd");
  config.eos_token_id = {'c'};
  EXPECT_EQ(generate_texts(writer, inputs_of({"a"}), config)[0].text, "b");
}

}  // namespace
}  // namespace phalanx
