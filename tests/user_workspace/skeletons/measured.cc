// SPDX-License-Identifier: Apache-2.0
// The task that `trainer new task --kind=classification` writes, with more metrics.
#include <ATen/ops/cross_entropy_loss.h>

#include "own_classification.h"
#include "trainer/config/tree/schema.h"
#include "trainer/metrics/measures/auc.h"
#include "trainer/metrics/measures/class_counts.h"
#include "trainer/registry/kinds.h"

namespace {

class Measured : public OwnClassification {
 public:
  using OwnClassification::OwnClassification;

  void declare_metrics(phalanx::MetricSet& set) const override {
    OwnClassification::declare_metrics(set);
    set.add("f1", phalanx::metrics::f1());
    set.add("auc", phalanx::metrics::roc_auc());
  }

  phalanx::Loss compute_loss(OwnClassificationModel& model, const OwnClassificationBatch& batch,
                             const phalanx::State&) override {
    const at::Tensor logits = model.outputs(batch.features);
    phalanx::Loss loss = at::cross_entropy_loss(logits, batch.labels);
    for (const char* const name : {"accuracy", "f1", "auc"}) {
      loss.metric(name, {logits, batch.labels});
    }
    return loss;
  }
};

REGISTER_TASK("measured", Measured);

}  // namespace
