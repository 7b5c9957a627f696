// SPDX-License-Identifier: Apache-2.0
#include "models/layers/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/registry/kinds.h"
#include "trainer/registry/registry.h"

namespace phalanx {
namespace {

// Tokens, which have to be below the size of the vocabulary.
constexpr std::array kTokens{"pad_token_id", "eos_token_id", "decoder_start_token_id"};

void collect_unlimited(const config::Declaration& declaration, const std::string& prefix,
                       std::vector<std::string>& found) {
  for (const config::Field& field : declaration.fields()) {
    const config::Type& type = field.type.leaf();
    const std::string name = prefix + field.name;
    const bool is_token = std::find(kTokens.begin(), kTokens.end(), field.name) != kTokens.end();
    if (type.section != nullptr) collect_unlimited(*type.section, name + ".", found);
    if (type.kind != config::Type::Kind::integer || is_token) continue;
    if (!type.range.low || !type.range.high) found.push_back(name);
  }
}

TEST(Limits, EverySizeOfAModelHasOne) {
  const auto& models = Registry<ModelBase>::instance();
  ASSERT_EQ(models.table().names(), (std::vector<std::string>{"gpt2", "llama", "t5"}));
  for (const std::string& name : models.table().names()) {
    std::vector<std::string> unlimited;
    collect_unlimited(*models.at(name).declaration(), name + ".", unlimited);
    EXPECT_EQ(unlimited, std::vector<std::string>());
  }
}

// The largest tensors of a model: of the vocabulary, of positions, of a hidden layer, of all heads.
TEST(Limits, NoTensorHasTooManyElementsToCountItsBytes) {
  for (const auto& [rows, columns] :
       {std::pair(kLargestVocabulary, kWidestStates), std::pair(kLongestSequence, kWidestStates),
        std::pair(kWidestHiddenLayer, kWidestStates),
        std::pair(3 * kMostHeads * kWidestHead, kWidestStates)}) {
    int64_t bytes = 0;
    EXPECT_FALSE(__builtin_mul_overflow(rows * int64_t{sizeof(double)}, columns, &bytes));
  }
}

}  // namespace
}  // namespace phalanx
