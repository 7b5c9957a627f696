// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/token_chooser.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <limits>

namespace phalanx {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

at::Tensor only_top_k(const at::Tensor& logits, int64_t k) {
  if (k >= logits.numel()) return logits;
  const at::Tensor least = std::get<0>(at::topk(logits, k)).min();
  return logits.masked_fill(logits < least, kNever);
}

at::Tensor only_top_p(const at::Tensor& logits, double p) {
  const auto [sorted, order] = at::sort(logits);
  const at::Tensor is_unlikely = at::softmax(sorted, -1).cumsum(-1).le(1 - p);
  is_unlikely[-1].fill_(false);  // The likeliest stays, whatever p is.
  return logits.masked_fill(at::empty_like(is_unlikely).scatter_(0, order, is_unlikely), kNever);
}

}  // namespace

at::Tensor penalized(const at::Tensor& logits, std::span<const int32_t> text, double penalty) {
  at::Tensor tokens = at::empty({static_cast<int64_t>(text.size())}, at::kLong);
  std::copy(text.begin(), text.end(), tokens.mutable_data_ptr<int64_t>());
  tokens = tokens.to(logits.device());
  const at::Tensor seen = logits.index_select(0, tokens);
  return logits.scatter(0, tokens, at::where(seen < 0, seen * penalty, seen / penalty));
}

at::Tensor probabilities_of(const at::Tensor& logits, const GenerationConfig& config) {
  at::Tensor kept = logits.to(at::kCPU, at::kDouble).div(config.temperature);
  if (config.top_k) kept = only_top_k(kept, *config.top_k);
  if (config.top_p < 1) kept = only_top_p(kept, config.top_p);
  return at::softmax(kept, -1);
}

int32_t choose_token(const at::Tensor& logits, std::span<const int32_t> text,
                     const GenerationConfig& config, const at::Generator& generator) {
  const at::Tensor weighed =
      config.repetition_penalty == 1 ? logits : penalized(logits, text, config.repetition_penalty);
  if (config.temperature == 0) {
    return static_cast<int32_t>(at::argmax(weighed).item<int64_t>());
  }
  const at::Tensor probabilities = probabilities_of(weighed, config);
  return static_cast<int32_t>(
      at::multinomial(probabilities, 1, /*replacement=*/false, generator).item<int64_t>());
}

void require_finite(const at::Tensor& logits) {
  // NaN is greater than all numbers here; -inf forbids a token.
  if (logits.amax(-1).isfinite().all().item<bool>()) return;
  throw NotFinite("the probabilities of the next token are not finite");
}

}  // namespace phalanx
