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
  s.field("max_marked", &PredictConfig::max_marked,
          "the share of samples that may be marked; with more the command ends with exit code 1, "
          "after all rows are written")
      .at_least(0)
      .at_most(1)
      .resume_may_change();
  s.ineffective({"max_marked"}, "on_error is stop",
                [](const PredictConfig& c) { return c.on_error == OnPredictError::stop; });
}

PredictConfig predict_config(const config::Node& resolved) {
  const config::Node* section = resolved.find(kPredictSection);
  return section == nullptr ? PredictConfig() : config::read<PredictConfig>(*section);
}

}  // namespace phalanx
