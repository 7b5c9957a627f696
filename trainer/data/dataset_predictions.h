// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/api/prediction_source.h"
#include "trainer/data/dataset.h"

namespace phalanx {

/// The samples of a data set, in its order, to make predictions of.
std::unique_ptr<PredictionSource> predictions_of(std::shared_ptr<const Dataset> dataset);

}  // namespace phalanx
