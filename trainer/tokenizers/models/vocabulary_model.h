// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "trainer/tokenizers/models/model.h"
#include "trainer/tokenizers/vocabulary.h"

namespace phalanx {

/// A model whose tokens are the entries of a vocabulary.
class VocabularyModel : public Model {
 public:
  explicit VocabularyModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  std::optional<std::string_view> text_of(int32_t token) const final {
    return vocabulary_.text_of(token);
  }
  std::optional<int32_t> token_of(std::string_view text) const final {
    return vocabulary_.find(text);
  }
  std::size_t count() const final { return vocabulary_.count(); }
  int32_t size() const final { return vocabulary_.size(); }

 protected:
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
};

/// The token for what is unknown. Throws std::invalid_argument where the vocabulary lacks it.
int32_t unknown_token(const Vocabulary& vocabulary, const std::string& text);

}  // namespace phalanx
