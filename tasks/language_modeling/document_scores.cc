// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/document_scores.h"

#include <ATen/ops/log_softmax.h>

#include <cmath>
#include <functional>

namespace phalanx {
namespace {

// Logits of the first `length` places of a row, [length, vocabulary]: those of all rows would take
// too much memory at a time.
std::function<at::Tensor(int64_t row, int64_t length)> logits_by_row(CausalLanguageModel& model,
                                                                     const at::Tensor& inputs) {
  if (const auto hidden = model.hidden_states(inputs, /*positions=*/{})) {
    return [hidden = *hidden](int64_t row, int64_t length) {
      const at::Tensor states = hidden.states.narrow(0, row, 1).narrow(1, 0, length);
      return logits_of({.states = states, .head = hidden.head}).squeeze(0);
    };
  }
  return [logits = model.logits(inputs)](int64_t row, int64_t length) {
    return logits[row].narrow(0, 0, length);
  };
}

}  // namespace

Predictions document_scores(CausalLanguageModel& model, const TokenBatch& batch) {
  const auto logits = logits_by_row(model, batch.inputs);
  Predictions predictions;
  for (int64_t row = 0; row < batch.inputs.size(0); ++row) {
    const at::Tensor targets = batch.targets[row];
    const int64_t length = targets.ne(kNoTarget).sum().item<int64_t>();
    const at::Tensor logs = at::log_softmax(logits(row, length), -1, at::kDouble);
    const at::Tensor places = targets.narrow(0, 0, length).unsqueeze(1).to(logs.device());
    const double sum = logs.gather(1, places).sum().item<double>();
    predictions.push_back({{"log_probability", sum},
                           {"tokens", length},
                           {"perplexity", std::exp(-sum / static_cast<double>(length))}});
  }
  return predictions;
}

}  // namespace phalanx
