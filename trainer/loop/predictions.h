// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "trainer/api/batch.h"
#include "trainer/api/prediction.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/step/pass_context.h"

namespace phalanx {

/// Called around each batch of predictions of this rank.
struct PredictionHooks {
  std::function<void(const State&, const Batch&)> before;
  std::function<void(const State&, const Batch&, const Predictions&)> after;
};

/// Makes predictions, batch by batch. `task`: how errors name it. Throws UserError for a task that
/// makes none. All ranks call it.
void make_predictions(const PassContext& context, const std::string& task,
                      const PredictionRequest& request, const PredictionHooks& hooks);

}  // namespace phalanx
