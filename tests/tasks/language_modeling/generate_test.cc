// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/generate.h"

#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/tasks/language_modeling/bigram.h"
#include "trainer/tensors/random.h"
#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

const ByteTokenizer kBytes;

/// A model that says "abcabc...": after each byte one is by far the likeliest.
void teach_alphabet(Bigram& model) {
  const c10::NoGradGuard no_grad;
  for (const auto& [from, to] : {std::pair{'a', 'b'}, {'b', 'c'}, {'c', 'a'}}) {
    model.table().select(0, from).select(0, to).fill_(100);
  }
}

TEST(GenerateText, FollowsTheModel) {
  Bigram model;
  teach_alphabet(model);
  EXPECT_EQ(generate_text(model, kBytes, "xa", 5, 1.0, 0), "xabcabc");
  EXPECT_EQ(generate_text(model, kBytes, "a", 3, 0.0, 0), "abca");
  EXPECT_EQ(generate_text(model, kBytes, "a", 0, 1.0, 0), "a");
}

TEST(GenerateText, ShowsTheModelAtMostItsContext) {
  Bigram model(256, 4);
  EXPECT_EQ(generate_text(model, kBytes, "abcdef", 10, 1.0, 0).size(), 16U);
  EXPECT_EQ(model.longest(), 4);
}

TEST(GenerateText, TheSeedAloneDecides) {
  Bigram model;
  EXPECT_EQ(generate_text(model, kBytes, "a", 50, 1.0, 3),
            generate_text(model, kBytes, "a", 50, 1.0, 3));
  EXPECT_NE(generate_text(model, kBytes, "a", 50, 1.0, 3),
            generate_text(model, kBytes, "a", 50, 1.0, 4));
}

TEST(GenerateText, LeavesTheDefaultGeneratorAndTheGraphAlone) {
  Bigram model;
  const at::Tensor before = rng_states().at("cpu");
  generate_text(model, kBytes, "a", 20, 1.0, 3);
  EXPECT_TRUE(rng_states().at("cpu").equal(before));
  EXPECT_FALSE(model.table().grad().defined());
}

TEST(GenerateText, NeverDrawsATokenBeyondTheBytes) {
  Bigram model(300);
  {
    const c10::NoGradGuard no_grad;
    model.table().narrow(1, 256, 44).fill_(1000);
  }
  const std::string text = generate_text(model, kBytes, "a", 200, 1.0, 1);
  EXPECT_GT(std::set<char>(text.begin(), text.end()).size(), 50U);
}

TEST(GenerateText, RefusesProbabilitiesThatAreNotFinite) {
  Bigram model;
  {
    const c10::NoGradGuard no_grad;
    model.table().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  for (const double temperature : {0.0, 1.0}) {
    EXPECT_THAT([&] { generate_text(model, kBytes, "a", 1, temperature, 0); },
                ::testing::ThrowsMessage<std::runtime_error>(
                    "the probabilities of the next token are not finite"));
  }
}

TEST(GenerateText, MayForbidABytesLogit) {
  Bigram model;
  {
    const c10::NoGradGuard no_grad;
    model.table().fill_(-std::numeric_limits<float>::infinity());
    model.table().select(1, 'z').fill_(0);
  }
  EXPECT_EQ(generate_text(model, kBytes, "a", 3, 1.0, 0), "azzz");
}

TEST(GenerateText, ALowTemperaturePrefersTheLikely) {
  Bigram model;
  {
    const c10::NoGradGuard no_grad;
    model.table().select(1, 'z').fill_(3);
  }
  const auto share = [&](double temperature) {
    const std::string text = generate_text(model, kBytes, "a", 300, temperature, 1);
    return std::count(text.begin(), text.end(), 'z');
  };
  EXPECT_GT(share(0.3), 2 * share(1.0));
}

}  // namespace
}  // namespace phalanx
