// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/token_set.h"

namespace phalanx {

/// A part of a set of tokens: [begin, end).
struct TokenSpan {
  std::shared_ptr<const TokenSet> tokens;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Tokens [begin, begin + out.size()) of a set. A negative token, or with a `vocabulary_size` one
/// that is not below it, throws BrokenSampleError, which names its place: a model would read beyond
/// its embedding.
void read_known(const TokenSet& tokens, int64_t begin, std::optional<int64_t> vocabulary_size,
                std::span<int64_t> out);

/// A hash (XXH3, 64 bits) of the length of a sample, and of each range the number of tokens and the
/// tokens themselves: all of them up to 2^20, else 256 evenly spread blocks of 4096, the first and
/// the last included. So it is cheap for any size, does not depend on where the files lie or how
/// they are cut, and may miss a change inside big data that keeps its length.
std::string fingerprint_of(const std::vector<TokenSpan>& spans, int64_t sample_length);

}  // namespace phalanx
