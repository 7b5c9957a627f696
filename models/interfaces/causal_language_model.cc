// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/causal_language_model.h"

#include <stdexcept>

namespace phalanx {

at::Tensor CausalLanguageModel::logits_by_document(const at::Tensor& tokens,
                                                   const at::Tensor& positions) {
  if (separates_documents()) {
    if (const auto hidden = hidden_states(tokens, positions)) return logits_of(*hidden);
  }
  throw std::logic_error("this model does not keep documents apart");
}

std::optional<HiddenStates> CausalLanguageModel::hidden_states(const at::Tensor&,
                                                               const at::Tensor&) {
  return std::nullopt;
}

std::optional<HiddenStates> CausalLanguageModel::next_states(const at::Tensor&, const at::Tensor&,
                                                             DecoderCache&) {
  return std::nullopt;
}

}  // namespace phalanx
