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
namespace {

// The positions of columns [begin, end) of rows that are padded on the left. Each column of the
// padding is a document of its own, which no other column sees.
at::Tensor positions_of(int64_t begin, int64_t end, const at::Tensor& padding) {
  return (at::arange(begin, end, padding.options()) - padding).clamp_min(0);
}

// The values [rows, 1, width] of each row at its column in `last`, or at the last one where that is
// undefined.
at::Tensor at_last(const at::Tensor& values, const at::Tensor& last) {
  if (!last.defined()) return values.narrow(1, values.size(1) - 1, 1);
  return values.gather(1, last.to(values.device()).unsqueeze(2).expand({-1, 1, values.size(2)}));
}

}  // namespace

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

void CausalWriter::idle() {
  read_again(at::zeros({1, 1}, at::kLong), /*positions=*/{}, /*last=*/{});
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
  return is_padded_ ? read_padded(tokens, left_out)
                    : read_again(tokens, /*positions=*/{}, /*last=*/{});
}

at::Tensor CausalWriter::read_with_cache(int64_t added) {
  const int64_t columns = tokens_.size(1);
  const at::Tensor positions =
      is_padded_ ? positions_of(columns - added, columns, padding_) : at::Tensor();
  const auto hidden =
      model_.next_states(tokens_.narrow(1, columns - added, added), positions, cache_);
  return hidden ? last_logits_of(*hidden) : at::Tensor();
}

at::Tensor CausalWriter::read_padded(const at::Tensor& tokens, int64_t left_out) {
  const int64_t columns = tokens.size(1);
  const at::Tensor padding = (padding_ - left_out).clamp_min(0);
  if (model_.separates_documents()) {
    return read_again(tokens, positions_of(0, columns, padding), /*last=*/{});
  }
  // It cannot leave out what is before a text. What is behind one changes nothing, as each token is
  // predicted from those before it: the rows begin at the left, and repeat their last token.
  const at::Tensor shifted =
      (at::arange(columns, tokens.options()) + padding).clamp_max(columns - 1);
  return read_again(tokens.gather(1, shifted), /*positions=*/{}, columns - 1 - padding);
}

at::Tensor CausalWriter::read_again(const at::Tensor& tokens, const at::Tensor& positions,
                                    const at::Tensor& last) {
  if (const auto hidden = model_.hidden_states(tokens, positions)) {
    return last_logits_of({.states = at_last(hidden->states, last), .head = hidden->head});
  }
  const at::Tensor logits =
      positions.defined() ? model_.logits_by_document(tokens, positions) : model_.logits(tokens);
  return at_last(logits, last).squeeze(1);
}

}  // namespace phalanx
