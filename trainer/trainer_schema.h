// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/composition.h"
#include "trainer/config/tree/declaration.h"

namespace phalanx {

/// The fields that every trainer's config begins with: TrainerConfig's own and `training`.
config::Declaration trainer_declaration();

/// The sections that every trainer's config ends with; each picks a registered class by `name`:
/// task, model, optimizer (or several in `optimizers`), lr_scheduler, launcher.
void add_registered_sections(config::Declaration& declaration);

}  // namespace phalanx
