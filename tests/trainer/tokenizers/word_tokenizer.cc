// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/tokenizers/word_tokenizer.h"

namespace phalanx {

nlohmann::json word_json(const std::vector<std::string>& words) {
  nlohmann::json vocabulary = {{"[UNK]", 0}};
  for (const std::string& word : words) vocabulary.emplace(word, vocabulary.size());
  return {{"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "CharDelimiterSplit"}, {"delimiter", " "}}},
          {"decoder", nullptr},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}}};
}

}  // namespace phalanx
