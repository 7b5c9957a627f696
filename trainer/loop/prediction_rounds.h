// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trainer/api/batch.h"
#include "trainer/api/prediction.h"
#include "trainer/api/prediction_source.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Computes a batch. A rank for which none is left computes another one that nobody asks for, as
/// collectives may be in it.
using ComputePredictions = std::function<Predictions(Batch& batch, bool is_asked_for)>;

/// Deals the batches of a request to the ranks, round by round, and brings the texts of each round
/// to rank 0 in the order of the samples. Every rank calls it. Throws UserError for a sample that
/// cannot be read, before the first is computed, unless the request marks it.
void predict_in_rounds(const PredictionSource& source, const PredictionRequest& request,
                       const Ranks& ranks, const ComputePredictions& compute);

}  // namespace phalanx
