// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/activation_checkpointing_mixin.h"
#include "trainer/mixins/averages_mixin.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/compute_mixin.h"
#include "trainer/mixins/early_stopping_mixin.h"
#include "trainer/mixins/guards_mixin.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/mixins/lora_mixin.h"
#include "trainer/mixins/mixed_precision_mixin.h"
#include "trainer/mixins/pipeline_mixin.h"
#include "trainer/mixins/predict_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/registry/trainers.h"
#include "trainer/trainer.h"

namespace phalanx {

REGISTER_TRAINER(
    "pipeline",
    Trainer<ComputeMixin, MixedPrecisionMixin, PipelineMixin, ActivationCheckpointingMixin,
            LoraMixin, AveragesMixin, LoggingMixin, ValidationMixin, PredictMixin,
            EarlyStoppingMixin, GuardsMixin, CheckpointMixin>);

}  // namespace phalanx
