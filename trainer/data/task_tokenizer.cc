// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/task_tokenizer.h"

#include <algorithm>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/special_reading.h"

namespace phalanx {

int64_t TaskTokenizer::vocabulary_size() const {
  const int64_t known = tokenizer ? tokenizer->vocabulary_size() : 0;
  return std::max(known, end_of_text + 1);
}

TaskText TaskTokenizer::text(bool special_tokens) const {
  const bool reads_special = special_tokens && tokenizer != nullptr;
  return {.tokenizer = reads_special ? reading_special_tokens(tokenizer) : tokenizer,
          .end_of_text = end_of_text};
}

TaskTokenizer task_tokenizer(std::optional<LoadedTokenizer> tokenizer,
                             std::optional<int64_t> end_of_text) {
  TaskTokenizer made;
  if (tokenizer) {
    made.tokenizer = std::move(tokenizer->tokenizer);
    for (auto& [name, content] : tokenizer->files) {
      made.files.push_back({.name = std::move(name), .content = std::move(content)});
    }
    if (!end_of_text) end_of_text = made.tokenizer->end_of_text();
  }
  if (!end_of_text) {
    throw UserError(
        "task.data.end_of_text: no tokenizer names the token that ends a text: set it to one that "
        "no text has");
  }
  made.end_of_text = *end_of_text;
  return made;
}

}  // namespace phalanx
