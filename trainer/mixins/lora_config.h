// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/adaptable_module.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

class ModelBase;

/// The section `lora`, under the names and with the defaults of peft's LoraConfig.
struct LoraConfig {
  std::vector<std::string> target_modules;
  int64_t r = 8;
  double lora_alpha = 8;
  double lora_dropout = 0;

  /// Whether adapters are trained in place of the model.
  bool is_used() const { return !target_modules.empty(); }
  AdapterOptions options() const;
  /// Adds them to a model. Throws UserError for a target that matches no module.
  void adapt(ModelBase& model) const;

  static void describe(config::Schema<LoraConfig>& s);
};

}  // namespace phalanx
