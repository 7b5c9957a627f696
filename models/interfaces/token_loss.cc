// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/token_loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "models/interfaces/chunked_token_loss.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

constexpr int64_t kLeftOut = -100;

// Logits that are computed at once by default: 256 MiB in float32.
constexpr int64_t kLogitsAtOnce = int64_t{1} << 26;
// With fewer places a chunk, adding up the head's gradient would take most of the time.
constexpr int64_t kFewestPlaces = 256;

int64_t chunk_for(const TokenLossConfig& config, int64_t places, int64_t vocabulary) {
  if (config.chunk) return *config.chunk == 0 ? places : *config.chunk;
  return std::max(kLogitsAtOnce / vocabulary, kFewestPlaces);
}

at::Tensor loss_in_chunks(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                          int64_t chunk) {
  at::Tensor states = hidden.states.flatten(0, -2);
  at::Tensor wanted = targets.flatten();
  if (tokens < wanted.numel()) {  // what is left out needs no logits
    const at::Tensor places = wanted.ne(kLeftOut).nonzero().squeeze(1);
    states = states.index_select(0, places);
    wanted = wanted.index_select(0, places);
  }
  return chunked_token_loss(states, hidden.head, wanted, chunk);
}

}  // namespace

void TokenLossConfig::describe(config::Schema<TokenLossConfig>& s) {
  s.field("chunk", &TokenLossConfig::chunk,
          "places whose logits are computed together, so that those of a micro-batch are never all "
          "in memory; 0: all places; auto: all, or of a large micro-batch as many as have 2^26 "
          "logits")
      .null_is("auto")
      .at_least(0)
      .unit("tokens")
      .resume_may_change();
}

at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens) {
  const bool is_short = at::isReducedFloatingType(logits.scalar_type());
  const at::Tensor exact = is_short ? logits.to(at::kFloat) : logits;
  // The mean over no target would be 0 / 0.
  const auto reduction = tokens > 0 ? at::Reduction::Mean : at::Reduction::Sum;
  return at::cross_entropy_loss(exact.flatten(0, -2), targets.flatten(), /*weight=*/{}, reduction,
                                kLeftOut);
}

at::Tensor token_loss(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                      const TokenLossConfig& config) {
  const int64_t places = targets.numel();
  const int64_t chunk = chunk_for(config, places, hidden.head.size(0));
  if (chunk < places) return loss_in_chunks(hidden, targets, tokens, chunk);
  return token_loss(logits_of(hidden), targets, tokens);
}

}  // namespace phalanx
