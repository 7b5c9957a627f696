// SPDX-License-Identifier: Apache-2.0
#include "tests/models/causal_model.h"

#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

CausalModel::CausalModel(const std::string& name, const config::Node& section)
    : model_(Registry<ModelBase>::instance().at(name).make(section)),
      interface_(dynamic_cast<CausalLanguageModel&>(*model_)) {}

}  // namespace phalanx
