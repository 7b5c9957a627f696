// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/activation_checkpointing_mixin.h"
#include "trainer/mixins/averages_mixin.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/compute_mixin.h"
#include "trainer/mixins/early_stopping_mixin.h"
#include "trainer/mixins/guards_mixin.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/mixins/mixed_precision_mixin.h"
#include "trainer/mixins/predict_mixin.h"
#include "trainer/mixins/remote_embedding_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/registry/trainers.h"
#include "trainer/trainer.h"

namespace phalanx {

REGISTER_TRAINER("ddp_with_remote_embedding",
                 Trainer<ComputeMixin, MixedPrecisionMixin, RemoteEmbeddingMixin,
                         ActivationCheckpointingMixin, AveragesMixin, LoggingMixin, ValidationMixin,
                         PredictMixin, EarlyStoppingMixin, GuardsMixin, CheckpointMixin>);

}  // namespace phalanx
