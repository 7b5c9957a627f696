#include "trainer/mixins/anomaly_mixin.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/registry/trainers.h"
#include "trainer/trainer.h"

namespace phalanx {

REGISTER_TRAINER(
    "supervised_debug",
    Trainer<ParallelMixin, LoggingMixin, AnomalyMixin, ValidationMixin, CheckpointMixin>);

}  // namespace phalanx
