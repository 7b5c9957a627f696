// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/token_loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/nonzero_static.h>

#include <algorithm>

#include "models/interfaces/chunked_token_loss.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

constexpr int64_t kLeftOut = -100;

// Logits that are computed at once by default, on the CPU: 256 MiB in float32.
constexpr int64_t kLogitsAtOnce = int64_t{1} << 26;
// On a GPU: 2 GiB, with their logarithms in float32.
constexpr int64_t kLogitsAtOnceOnGpu = int64_t{1} << 28;
// With fewer places a chunk, adding up the head's gradient would take most of the time.
constexpr int64_t kFewestPlaces = 256;
// Rows that a GPU's matrix units take together.
constexpr int64_t kRowsOfGpu = 128;

int64_t divided_up(int64_t number, int64_t by) { return (number + by - 1) / by; }

// As few chunks as there may be, and of one size.
int64_t chunk_on_gpu(int64_t places, int64_t most) {
  const int64_t chunks = divided_up(places, std::max(most, kFewestPlaces));
  return divided_up(divided_up(places, chunks), kRowsOfGpu) * kRowsOfGpu;
}

TokenLossParts loss_in_chunks(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                              int64_t chunk, const TokenLossTerms& terms) {
  at::Tensor states = hidden.states.flatten(0, -2);
  at::Tensor wanted = targets.flatten();
  if (tokens < wanted.numel()) {  // what is left out needs no logits
    // Their number is known: without it the host would wait for a GPU to count them.
    const at::Tensor places = at::nonzero_static(wanted.ne(kLeftOut), tokens).squeeze(1);
    states = states.index_select(0, places);
    wanted = wanted.index_select(0, places);
  }
  const int64_t columns = logit_columns(states.device().type(), hidden.head.size(0));
  return chunked_token_loss(states, hidden.head, wanted, chunk, columns, terms);
}

// By a product of the size that the device is fast with (logit_columns).
at::Tensor all_logits_of(const HiddenStates& hidden) {
  const int64_t vocabulary = hidden.head.size(0);
  const int64_t columns = logit_columns(hidden.states.device().type(), vocabulary);
  if (columns == vocabulary) return logits_of(hidden);
  const at::Tensor head = at::constant_pad_nd(hidden.head, {0, 0, 0, columns - vocabulary});
  return logits_of({.states = hidden.states, .head = head}).narrow(-1, 0, vocabulary);
}

at::Tensor at_least_single(const at::Tensor& logits) {
  const bool is_short = at::isReducedFloatingType(logits.scalar_type());
  return is_short ? logits.to(at::kFloat) : logits;
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens,
                         double label_smoothing = 0) {
  // The mean over no target would be 0 / 0.
  const auto reduction = tokens > 0 ? at::Reduction::Mean : at::Reduction::Sum;
  return at::cross_entropy_loss(logits.flatten(0, -2), targets.flatten(), /*weight=*/{}, reduction,
                                kLeftOut, label_smoothing);
}

TokenLossParts loss_of_logits(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens,
                              const TokenLossTerms& terms) {
  const at::Tensor exact = at_least_single(logits);
  TokenLossParts parts;
  parts.total = cross_entropy(exact, targets, tokens, terms.label_smoothing);
  if (terms.label_smoothing > 0) {
    parts.label_smoothing =
        parts.total.detach().sub(cross_entropy(exact.detach(), targets, tokens));
  }
  if (terms.z_loss > 0) {
    const at::Tensor squares = exact.logsumexp(-1).square().masked_fill(targets.eq(kLeftOut), 0);
    const at::Tensor z_loss = squares.sum().mul(terms.z_loss / std::max<double>(tokens, 1));
    parts.total = parts.total.add(z_loss);
    parts.z_loss = z_loss.detach();
  }
  return parts;
}

NamedLosses named(const TokenLossParts& parts) {
  if (!parts.label_smoothing.defined() && !parts.z_loss.defined()) return {{"loss", parts.total}};
  NamedLosses losses{{"cross_entropy", parts.total}};
  const auto add = [&](const char* name, const at::Tensor& term) {
    if (!term.defined()) return;
    losses.front().second = losses.front().second.sub(term);
    losses.emplace_back(name, term);
  };
  add("label_smoothing", parts.label_smoothing);
  add("z_loss", parts.z_loss);
  return losses;
}

}  // namespace

void TokenLossConfig::describe(config::Schema<TokenLossConfig>& s) {
  s.field("chunk", &TokenLossConfig::chunk,
          "places whose logits are computed together, so that those of a micro-batch are never all "
          "in memory; 0: all places; auto: all, or of a large micro-batch as many as have 2^26 "
          "logits, on a GPU 2^28")
      .null_is("auto")
      .at_least(0)
      .unit("tokens")
      .resume_may_change();
  s.field("label_smoothing", &TokenLossConfig::label_smoothing,
          "in training: share of a target's probability that goes to all tokens alike")
      .in_range(0, 1)
      .resume_may_change();
  s.field("z_loss", &TokenLossConfig::z_loss,
          "in training: adds z_loss * (log of the sum of exp(logits))^2, which keeps logits small; "
          "1e-4 is usual")
      .in_range(0, 1)
      .resume_may_change();
}

LossChunks loss_chunks(const TokenLossConfig& config, c10::DeviceType device, int64_t places,
                       int64_t vocabulary) {
  const auto unless_all = [&](int64_t chunk) {
    return chunk < places ? LossChunks{.places = chunk} : LossChunks{};
  };
  if (config.chunk) return unless_all(*config.chunk == 0 ? places : *config.chunk);
  const int64_t few = std::max(kLogitsAtOnce / vocabulary, kFewestPlaces);
  if (device == c10::DeviceType::CPU || places <= few) return unless_all(few);
  return {.places = chunk_on_gpu(places, kLogitsAtOnceOnGpu / vocabulary)};
}

at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens) {
  return loss_of_logits(logits, targets, tokens, {}).total;
}

at::Tensor token_loss(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                      const TokenLossConfig& config) {
  return token_losses(hidden, targets, tokens, config.without_terms()).front().second;
}

NamedLosses token_losses(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens,
                         const TokenLossConfig& config) {
  return named(loss_of_logits(logits, targets, tokens, config.terms()));
}

NamedLosses token_losses(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                         const TokenLossConfig& config) {
  const LossChunks chunks =
      loss_chunks(config, hidden.states.device().type(), targets.numel(), hidden.head.size(0));
  if (!chunks.places) return token_losses(all_logits_of(hidden), targets, tokens, config);
  return named(loss_in_chunks(hidden, targets, tokens, *chunks.places, config.terms()));
}

}  // namespace phalanx
