// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/document_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// Bounds the memory of a search for documents.
constexpr int64_t kTokensAtATime = 1 << 20;

}  // namespace

DocumentSamples::DocumentSamples(std::vector<TokenSpan> spans, int64_t length,
                                 std::optional<int64_t> vocabulary_size)
    : spans_(std::move(spans)), length_(length), vocabulary_size_(vocabulary_size) {
  if (spans_.empty() || length_ < 1)
    throw std::invalid_argument("no range of tokens, or no length");
  for (const TokenSpan& span : spans_) {
    if (span.begin < 0 || span.begin > span.end || span.end > span.tokens->size()) {
      throw std::invalid_argument(fmt::format("[{}, {}) is no part of {} tokens", span.begin,
                                              span.end, span.tokens->size()));
    }
    targets_.push_back(0);
    find_documents(span);
    by_span_.add(samples_ - by_span_.size());
  }
}

void DocumentSamples::find_documents(const TokenSpan& span) {
  int64_t begin = span.begin;  // Perhaps in the midst of a document.
  for (int64_t place = span.begin; place < span.end; place += kTokensAtATime) {
    const int64_t end = std::min(place + kTokensAtATime, span.end);
    for (const DocumentBegin& document : span.tokens->document_begins(place, end)) {
      add_document(begin, document.place + (document.is_end_of_text ? 1 : 0));
      begin = document.place;
    }
  }
  add_document(begin, span.end);
}

void DocumentSamples::add_document(int64_t begin, int64_t end) {
  if (end - begin < 2) return;
  documents_.push_back({.begin = begin, .end = end, .first_sample = samples_});
  targets_.back() += end - begin - 1;
  samples_ += (end - begin - 1 + length_ - 1) / length_;
}

DocumentSamples::TokenRange DocumentSamples::range_of(int64_t index) const {
  const auto behind = std::upper_bound(
      documents_.begin(), documents_.end(), index,
      [](int64_t sample, const Document& document) { return sample < document.first_sample; });
  const Document& document = *(behind - 1);
  const int64_t begin = document.begin + (index - document.first_sample) * length_;
  return {.tokens = *spans_.at(by_span_.part_at(index)).tokens,
          .begin = begin,
          .length = std::min(length_, document.end - 1 - begin)};
}

std::optional<int64_t> DocumentSamples::length(int64_t index) const {
  return range_of(index).length;
}

std::unique_ptr<Batch> DocumentSamples::batch(std::span<const int64_t> indices) const {
  std::vector<TokenRange> ranges;
  int64_t width = 0;
  auto batch = std::make_unique<TokenBatch>();
  for (const int64_t index : indices) {
    ranges.push_back(range_of(index));
    width = std::max(width, ranges.back().length);
    batch->tokens += ranges.back().length;
  }
  batch->samples = static_cast<int64_t>(indices.size());
  batch->inputs = tensors::zeros({batch->samples, width}, at::kLong);
  batch->targets = tensors::empty({batch->samples, width}, at::kLong);
  auto* inputs = batch->inputs.mutable_data_ptr<int64_t>();
  auto* targets = batch->targets.mutable_data_ptr<int64_t>();
  std::fill_n(targets, batch->targets.numel(), kNoTarget);
  std::vector<int64_t> tokens;
  for (const TokenRange& range : ranges) {
    tokens.resize(static_cast<size_t>(range.length + 1));
    read_known(range.tokens, range.begin, vocabulary_size_, tokens);
    std::copy(tokens.begin(), tokens.end() - 1, inputs);
    std::copy(tokens.begin() + 1, tokens.end(), targets);
    inputs += width;
    targets += width;
  }
  return batch;
}

std::string DocumentSamples::fingerprint() const {
  return "documents-" + fingerprint_of(spans_, length_);
}

}  // namespace phalanx
