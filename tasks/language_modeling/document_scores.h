// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/prediction.h"
#include "trainer/data/token_batch.h"

namespace phalanx {

/// For each document of a batch: the sum of the log-probabilities of its tokens but the first, in
/// nats, how many these are, and the perplexity.
Predictions document_scores(CausalLanguageModel& model, const TokenBatch& batch);

}  // namespace phalanx
