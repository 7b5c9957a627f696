// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/models/kinds.h"
#include "trainer/tokenizers/models/vocabulary_model.h"

namespace phalanx::models {
namespace {

using nlohmann::json;

// Each piece is a token, or unknown.
class WordLevel final : public VocabularyModel {
 public:
  WordLevel(Vocabulary vocabulary, int32_t unknown, const ModelContext& context)
      : VocabularyModel(std::move(vocabulary)), hidden_(context.hidden), unknown_(unknown) {}

  void encode(std::string_view piece, std::vector<int32_t>& tokens) const override {
    const auto token = token_of(piece);
    tokens.push_back(token && !hidden_.contains(piece) ? *token : unknown_);
  }

 private:
  std::set<std::string, std::less<>> hidden_;
  int32_t unknown_;
};

}  // namespace

Made read_word_level(const json& object, const ModelContext& context) {
  Vocabulary vocabulary(read_vocabulary(object.at("vocab")));
  const int32_t unknown = unknown_token(vocabulary, object.at("unk_token").get<std::string>());
  return std::make_shared<WordLevel>(std::move(vocabulary), unknown, context);
}

}  // namespace phalanx::models
