// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2/gpt2.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <stdexcept>

#include "models/layers/decoder_cache.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

Gpt2::Gpt2(const Config& config)
    : config_(config),
      wte_(register_module("wte", Embedding(config.vocab_size, config.n_embd,
                                            config.initializer_range, TableUse::whole))),
      wpe_(register_module("wpe", Embedding(config.n_positions, config.n_embd,
                                            config.initializer_range, TableUse::rows))),
      ln_f_(nullptr) {
  auto list = register_module("h", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.n_layer; ++i) {
    blocks_.emplace_back(config);
    list->push_back(blocks_.back());
  }
  ln_f_ = register_module("ln_f", LayerNorm(config.n_embd, config.layer_norm_epsilon));
}

at::Tensor Gpt2::logits(const at::Tensor& tokens) {
  return logits_of(states(tokens, /*positions=*/at::Tensor(), /*cache=*/nullptr));
}

std::optional<HiddenStates> Gpt2::hidden_states(const at::Tensor& tokens,
                                                const at::Tensor& positions) {
  return states(tokens, positions, /*cache=*/nullptr);
}

std::optional<HiddenStates> Gpt2::next_states(const at::Tensor& tokens, const at::Tensor& positions,
                                              DecoderCache& cache) {
  return states(tokens, positions, &cache);
}

HiddenStates Gpt2::states(const at::Tensor& tokens, const at::Tensor& positions,
                          DecoderCache* cache) {
  const int64_t before = cache == nullptr ? 0 : cache->length();
  const int64_t end = before + tokens.size(-1);
  if (end > config_.n_positions) {
    throw std::invalid_argument(
        fmt::format("gpt2 was given {} tokens; its n_positions is {}", end, config_.n_positions));
  }
  const at::Tensor ids = tokens.to(wte_->weight.device());
  const at::Tensor places =
      positions.defined() ? positions.to(ids.device()) : at::arange(before, end, ids.options());
  const at::Tensor mask = positions.defined() ? mask_of(places, cache) : at::Tensor();
  // One statement each: C++ leaves the order of operands open, and autograd's order follows it.
  const at::Tensor token_part = wte_(ids);
  const at::Tensor position_part = wpe_(places);
  at::Tensor hidden = at::dropout(token_part + position_part, config_.embd_pdrop, is_training());
  for (size_t i = 0; i < blocks_.size(); ++i) hidden = blocks_[i](hidden, mask, layer_of(cache, i));
  return {.states = ln_f_(hidden), .head = wte_->weight};
}

REGISTER_MODEL("gpt2", Gpt2);

}  // namespace phalanx
