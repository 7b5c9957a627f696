// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "trainer/api/attachments.h"
#include "trainer/api/task_text.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {

/// The largest token that a config may name: tokens have 32 bits, and so has their number.
inline constexpr int64_t kLargestToken = std::numeric_limits<int32_t>::max() - 1;

/// What a task needs of a tokenizer.
struct TaskTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;  ///< Perhaps none: the data is tokens already.
  Attachments files;
  int64_t end_of_text = 0;

  /// What a model must know: one more than the largest of the tokens.
  int64_t vocabulary_size() const;

  /// AnyTask::text; with `special_tokens` the text of a special token is that token.
  TaskText text(bool special_tokens) const;
};

/// `end_of_text` is the value of task.data.end_of_text; nothing: the tokenizer's. Throws UserError
/// if neither has one.
TaskTokenizer task_tokenizer(std::optional<LoadedTokenizer> tokenizer,
                             std::optional<int64_t> end_of_text);

}  // namespace phalanx
