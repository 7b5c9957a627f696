// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/decay_config.h"

#include "trainer/optim/decay_fields.h"

namespace phalanx {

void DecayConfig::describe(config::Schema<DecayConfig>& s) { describe_decay(s); }

}  // namespace phalanx
