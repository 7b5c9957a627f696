// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_blocks.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/data/token_batch.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

constexpr int64_t kBlock = 4096;
constexpr int64_t kBlocks = 256;

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// The places of the blocks that are hashed: all, or kBlocks evenly spread ones.
std::vector<int64_t> sampled_blocks(int64_t begin, int64_t end) {
  std::vector<int64_t> places;
  const int64_t tokens = end - begin;
  if (tokens <= kBlock * kBlocks) {
    for (int64_t place = begin; place < end; place += kBlock) places.push_back(place);
    return places;
  }
  const int64_t last = tokens - kBlock;  // Of the last block that fits.
  // last / (kBlocks - 1) * i without the product's overflow, which comes at 36 x 10^15 otherwise.
  const int64_t stride = last / (kBlocks - 1);
  const int64_t rest = last % (kBlocks - 1);
  for (int64_t i = 0; i < kBlocks; ++i) {
    places.push_back(begin + stride * i + rest * i / (kBlocks - 1));
  }
  return places;
}

}  // namespace

TokenBlocks::TokenBlocks(std::vector<TokenSpan> spans, int64_t length,
                         std::optional<int64_t> vocabulary_size)
    : spans_(std::move(spans)), length_(length), vocabulary_size_(vocabulary_size) {
  if (spans_.empty()) throw std::invalid_argument("no range of tokens");
  int64_t end = 0;
  for (const auto& [tokens, span_begin, span_end] : spans_) {
    if (length_ < 1 || span_begin < 0 || span_end > tokens->size() ||
        span_end - span_begin < tokens_needed(length_)) {
      throw std::invalid_argument(
          fmt::format("tokens [{}, {}) of {} do not hold a sample of {} tokens", span_begin,
                      span_end, tokens->size(), length_));
    }
    end += (span_end - span_begin - 1) / length_;
    ends_.push_back(end);
  }
}

int64_t TokenBlocks::size() const { return ends_.back(); }

std::vector<int64_t> TokenBlocks::samples_by_span() const {
  std::vector<int64_t> samples = ends_;
  std::adjacent_difference(samples.begin(), samples.end(), samples.begin());
  return samples;
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
  std::vector<int64_t> tokens(static_cast<size_t>(length_ + 1));
  for (const int64_t index : indices) {
    read_sample(index, tokens);
    inputs = std::copy(tokens.begin(), tokens.end() - 1, inputs);
    targets = std::copy(tokens.begin() + 1, tokens.end(), targets);
  }
  return batch;
}

void TokenBlocks::read_sample(int64_t index, std::span<int64_t> out) const {
  const auto number =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  const TokenSpan& span = spans_.at(number);
  const int64_t before = number == 0 ? 0 : ends_[number - 1];
  const int64_t begin = span.begin + (index - before) * length_;
  span.tokens->read(begin, out);
  if (!vocabulary_size_) return;
  // As unsigned numbers, negative ones are too large.
  const auto limit = static_cast<uint64_t>(*vocabulary_size_);
  const auto wrong = std::find_if(
      out.begin(), out.end(), [&](int64_t token) { return static_cast<uint64_t>(token) >= limit; });
  if (wrong == out.end()) return;
  throw std::runtime_error(fmt::format(
      "{} is {}, but the model knows only tokens below {}: the tokens are not of its tokenizer, or "
      "the file is broken",
      span.tokens->place_of(begin + (wrong - out.begin())), *wrong, *vocabulary_size_));
}

std::string TokenBlocks::fingerprint() const {
  std::string text = fingerprint_of(spans_.front());
  if (spans_.size() == 1) return text;
  for (size_t i = 1; i < spans_.size(); ++i) text += " " + fingerprint_of(spans_[i]);
  return fmt::format("tokens-{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string TokenBlocks::fingerprint_of(const TokenSpan& span) const {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  const std::array<int64_t, 2> shape{length_, span.end - span.begin};
  XXH3_64bits_update(state.get(), shape.data(), sizeof(shape));
  const bool are_bytes = span.tokens->element() == "bytes";
  std::vector<int64_t> block(kBlock);
  std::vector<unsigned char> narrow(kBlock);
  for (const int64_t place : sampled_blocks(span.begin, span.end)) {
    const std::span part(block.data(), static_cast<size_t>(std::min(kBlock, span.end - place)));
    span.tokens->read(place, part);
    if (are_bytes) {
      std::transform(part.begin(), part.end(), narrow.begin(),
                     [](int64_t token) { return static_cast<unsigned char>(token); });
      XXH3_64bits_update(state.get(), narrow.data(), part.size());
    } else {
      XXH3_64bits_update(state.get(), part.data(), part.size_bytes());
    }
  }
  return fmt::format("{}-{:016x}", span.tokens->element(), XXH3_64bits_digest(state.get()));
}

}  // namespace phalanx
