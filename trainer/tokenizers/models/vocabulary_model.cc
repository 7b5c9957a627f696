// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/vocabulary_model.h"

#include <fmt/format.h>

#include <stdexcept>

namespace phalanx {

int32_t unknown_token(const Vocabulary& vocabulary, const std::string& text) {
  if (const auto token = vocabulary.find(text)) return *token;
  throw std::invalid_argument(
      fmt::format("the unk_token is '{}', which the vocabulary lacks", text));
}

}  // namespace phalanx
