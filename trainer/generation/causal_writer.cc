// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/causal_writer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>

namespace phalanx {

CausalWriter::CausalWriter(CausalLanguageModel& model,
                           std::span<const std::vector<int32_t>> prompts, bool use_cache)
    : model_(model), use_cache_(use_cache) {
  const auto rows = std::ssize(prompts);
  int64_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max<int64_t>(longest, std::ssize(prompt));
  tokens_ = at::zeros({rows, longest}, at::kLong);
  padding_ = at::empty({rows, 1}, at::kLong);
  int64_t* out = tokens_.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const auto& prompt = prompts[static_cast<size_t>(row)];
    const int64_t padding = longest - std::ssize(prompt);
    padding_.mutable_data_ptr<int64_t>()[row] = padding;
    std::copy(prompt.begin(), prompt.end(), out + row * longest + padding);
  }
  is_padded_ = padding_.any().item<bool>();
}

at::Tensor CausalWriter::begin() { return read(tokens_.size(1)); }

at::Tensor CausalWriter::next(const at::Tensor& tokens) {
  tokens_ = at::cat({tokens_, tokens.unsqueeze(1)}, 1);
  return read(1);
}

void CausalWriter::select(const at::Tensor& rows) {
  tokens_ = tokens_.index_select(0, rows);
  padding_ = padding_.index_select(0, rows);
  cache_.select(rows);
}

void CausalWriter::idle() { read_again(at::zeros({1, 1}, at::kLong), /*positions=*/{}); }

at::Tensor CausalWriter::positions(int64_t begin, int64_t end) const {
  if (!is_padded_) return {};
  // Each column of the padding is a document of its own, which no other column sees.
  return (at::arange(begin, end, tokens_.options()) - padding_).clamp_min(0);
}

at::Tensor CausalWriter::read(int64_t added) {
  const int64_t columns = tokens_.size(1);
  const int64_t seen = std::min(columns, model_.context_length());
  if (use_cache_ && seen == columns) {
    if (const at::Tensor logits = read_with_cache(added); logits.defined()) return logits;
    use_cache_ = false;  // This model has none.
  }
  const int64_t left_out = columns - seen;
  const at::Tensor tokens = tokens_.narrow(1, left_out, seen);
  at::Tensor places = positions(left_out, columns);
  // What is left out at the left is gone from the text: positions begin behind it.
  if (places.defined() && left_out > 0) places = (places - places.narrow(1, 0, 1)).clamp_min(0);
  return read_again(tokens, places);
}

at::Tensor CausalWriter::read_with_cache(int64_t added) {
  const int64_t columns = tokens_.size(1);
  const auto hidden = model_.next_states(tokens_.narrow(1, columns - added, added),
                                         positions(columns - added, columns), cache_);
  return hidden ? last_logits_of(*hidden) : at::Tensor();
}

at::Tensor CausalWriter::read_again(const at::Tensor& tokens, const at::Tensor& positions) {
  if (positions.defined() && !model_.separates_documents()) {
    // It cannot leave out the padding: each row is read without it.
    std::vector<at::Tensor> logits;
    for (int64_t row = 0; row < tokens.size(0); ++row) {
      const int64_t padding = positions[row].eq(0).sum().item<int64_t>() - 1;
      const at::Tensor text = tokens.narrow(0, row, 1).narrow(1, padding, tokens.size(1) - padding);
      logits.push_back(read_again(text, {}));
    }
    return at::cat(logits);
  }
  if (const auto hidden = model_.hidden_states(tokens, positions)) return last_logits_of(*hidden);
  const at::Tensor logits =
      positions.defined() ? model_.logits_by_document(tokens, positions) : model_.logits(tokens);
  return logits.select(1, tokens.size(1) - 1);
}

}  // namespace phalanx
