// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx {

TokenBlocks::TokenBlocks(std::vector<TokenSpan> spans, int64_t length)
    : TokenBlocks(std::move(spans), length, Options()) {}

TokenBlocks::TokenBlocks(std::vector<TokenSpan> spans, int64_t length, Options options)
    : spans_(std::move(spans)), length_(length), options_(options) {
  if (spans_.empty()) throw std::invalid_argument("no range of tokens");
  for (const auto& [tokens, span_begin, span_end] : spans_) {
    if (length_ < 1 || span_begin < 0 || span_end > tokens->size() ||
        span_end - span_begin < tokens_needed(length_)) {
      throw std::invalid_argument(
          fmt::format("tokens [{}, {}) of {} do not hold a sample of {} tokens", span_begin,
                      span_end, tokens->size(), length_));
    }
    samples_.add((span_end - span_begin - 1) / length_);
  }
}

std::unique_ptr<Batch> TokenBlocks::batch(std::span<const int64_t> indices) const {
  auto batch = std::make_unique<TokenBatch>();
  const auto samples = static_cast<int64_t>(indices.size());
  batch->samples = samples;
  batch->tokens = samples * length_;
  batch->inputs = tensors::empty({samples, length_}, at::kLong);
  batch->targets = tensors::empty({samples, length_}, at::kLong);
  auto* inputs = batch->inputs.mutable_data_ptr<int64_t>();
  auto* targets = batch->targets.mutable_data_ptr<int64_t>();
  int64_t* positions = nullptr;
  if (options_.separates_documents) {
    batch->positions = tensors::empty({samples, length_}, at::kLong);
    positions = batch->positions.mutable_data_ptr<int64_t>();
  }
  const auto length = static_cast<size_t>(length_);
  std::vector<int64_t> tokens(length + 1);
  for (const int64_t index : indices) {
    const BlockLocation location = location_of(index);
    read_known(location.tokens, location.begin, options_.vocabulary_size, tokens);
    inputs = std::copy(tokens.begin(), tokens.end() - 1, inputs);
    std::copy(tokens.begin() + 1, tokens.end(), targets);
    if (positions != nullptr) {
      batch->tokens -= separate_documents(location, {positions, length}, {targets, length});
      positions += length;
    }
    targets += length;
  }
  return batch;
}

TokenBlocks::BlockLocation TokenBlocks::location_of(int64_t index) const {
  const size_t number = samples_.part_at(index);
  const TokenSpan& span = spans_.at(number);
  return {.tokens = *span.tokens, .begin = span.begin + (index - samples_.begin(number)) * length_};
}

// Fills the positions and takes targets out; returns how many.
int64_t TokenBlocks::separate_documents(const BlockLocation& location, std::span<int64_t> positions,
                                        std::span<int64_t> targets) const {
  std::iota(positions.begin(), positions.end(), 0);
  int64_t taken_out = 0;
  for (const DocumentBegin& document :
       location.tokens.document_begins(location.begin, location.begin + length_ + 1)) {
    const auto begin = static_cast<size_t>(document.place - location.begin);
    const auto of_document = positions.subspan(std::min(begin, positions.size()));
    std::iota(of_document.begin(), of_document.end(), 0);
    if (begin == 0 || document.is_end_of_text) continue;
    targets[begin - 1] = kNoTarget;
    ++taken_out;
  }
  return taken_out;
}

}  // namespace phalanx
