// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The bytes that a token stands for within a text; nothing for one that is no text by itself: a
/// control token, a byte that is no character, a number without a token.
std::optional<std::string> bytes_within_text(const Tokenizer& tokenizer, int32_t token);

/// For each of the tokens [0, count) of `here` the same token of `there`, below `count_there`, or
/// -1: the one that ends a text is that of the other; others are the same if they stand for the
/// same bytes, also those of one byte within a character; of several the last for the last. Another
/// that is no text by itself is that of the same number, if it is no text either.
std::vector<int64_t> tokens_there(const Tokenizer& here, int64_t count, const Tokenizer& there,
                                  int64_t count_there);

}  // namespace phalanx
