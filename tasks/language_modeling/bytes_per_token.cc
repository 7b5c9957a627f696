// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/bytes_per_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

constexpr int64_t kMostSamples = 4096;

// By token. A token in the middle of a text: the first one may leave out a space.
std::vector<int64_t> bytes_of_tokens(const Tokenizer& tokenizer) {
  std::vector<int64_t> bytes(static_cast<size_t>(tokenizer.vocabulary_size()));
  for (int32_t token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (token == tokenizer.end_of_text()) continue;
    DecodingState state{.begins_text = false};
    std::string text;
    tokenizer.append_bytes(token, state, text);
    bytes[static_cast<size_t>(token)] = static_cast<int64_t>(text.size() + state.unfinished.size());
  }
  return bytes;
}

// A few may have been added behind the tokenizer's own: one for the end of a text, say.
void require_few_beyond(int64_t beyond, int64_t targets, const Tokenizer& tokenizer) {
  if (beyond * 10 <= targets) return;
  throw UserError(
      fmt::format("of {} tokens of the validation data, {} are beyond the {} tokens of the "
                  "tokenizer: they are of another one; set task.data.tokenizer to the one that "
                  "made them",
                  targets, beyond, tokenizer.vocabulary_size()));
}

}  // namespace

double bytes_per_token(const Dataset& samples, const Tokenizer& tokenizer) {
  const std::vector<int64_t> bytes_of = bytes_of_tokens(tokenizer);
  const int64_t stride = std::max<int64_t>(samples.size() / kMostSamples, 1);
  int64_t bytes = 0;
  int64_t tokens = 0;
  int64_t targets_seen = 0;
  for (int64_t sample = 0; sample < samples.size(); sample += stride) {
    try {
      const auto batch = samples.batch(std::span(&sample, 1));
      const at::Tensor& targets = static_cast<const TokenBatch&>(*batch).targets;
      const auto* begin = targets.const_data_ptr<int64_t>();
      for (const int64_t target : std::span(begin, static_cast<size_t>(targets.numel()))) {
        if (target < 0) continue;
        ++targets_seen;
        if (target >= std::ssize(bytes_of)) continue;
        bytes += bytes_of[static_cast<size_t>(target)];
        ++tokens;
      }
    } catch (const BrokenSampleError&) {
      // The loader counts it, and ends the run where none is allowed.
    }
  }
  require_few_beyond(targets_seen - tokens, targets_seen, tokenizer);
  return tokens > 0 ? static_cast<double>(bytes) / static_cast<double>(tokens) : 0;
}

}  // namespace phalanx
