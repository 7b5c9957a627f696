// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/predict_mixin.h"

#include "trainer/config/tree/schema.h"

namespace phalanx {

void PredictConfig::describe(config::Schema<PredictConfig>& s) {
  s.field("batch_size", &PredictConfig::batch_size,
          "samples of a batch; a batch is computed whole by one rank")
      .at_least(1)
      .resume_may_change();
  s.field("on_error", &PredictConfig::on_error,
          "what becomes of a sample that cannot be read: it ends the command, or its row says what "
          "is wrong")
      .choices({{"stop", OnPredictError::stop}, {"mark", OnPredictError::mark}})
      .resume_may_change();
}

PredictConfig predict_config(const config::Node& resolved) {
  const config::Node* section = resolved.find(kPredictSection);
  return section == nullptr ? PredictConfig() : config::read<PredictConfig>(*section);
}

}  // namespace phalanx
