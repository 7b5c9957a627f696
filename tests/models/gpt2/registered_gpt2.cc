// SPDX-License-Identifier: Apache-2.0
#include "tests/models/gpt2/registered_gpt2.h"

#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

RegisteredGpt2::RegisteredGpt2(const gpt2::Config& config)
    : model_(Registry<ModelBase>::instance().at("gpt2").make(config::write(config))),
      interface_(dynamic_cast<CausalLanguageModel&>(*model_)) {}

}  // namespace phalanx
