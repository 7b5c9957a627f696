// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/task.h"

namespace phalanx {

std::vector<TaskModule> AnyTask::build_modules(ModelBase&) { return {}; }
NamedValues AnyTask::metrics(const NamedValues&) const { return {}; }
void AnyTask::declare_metrics(MetricSet&) const {}
std::string AnyTask::sample(ModelBase&, const State&) { return {}; }
std::unique_ptr<PredictionSource> AnyTask::prediction_data(const PredictionInput&) {
  return nullptr;
}
Predictions AnyTask::predictions(ModelBase&, const Batch&, const State&) { return {}; }
std::vector<NamedValues> AnyTask::text_scores(ModelBase&, const Batch&, const State&) { return {}; }
TaskText AnyTask::text() const { return {}; }
Attachments AnyTask::attachments() const { return {}; }

MetricSet declared_metrics(const AnyTask& task) {
  MetricSet set;
  task.declare_metrics(set);
  return set;
}

}  // namespace phalanx
