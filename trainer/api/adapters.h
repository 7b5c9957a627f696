// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/adaptable_module.h"
#include "trainer/api/model_base.h"

namespace phalanx {

/// A module that takes an adapter, by its dotted name in the model: "h.3.attn.c_attn".
struct NamedAdaptable {
  std::string name;
  AdaptableModule* module;
};

/// Those of a model, without its task's modules, in the order of registration.
std::vector<NamedAdaptable> adaptable_modules(ModelBase& model);

/// Whether any has one: what is trained, and kept in checkpoints, is the adapters alone then.
bool has_adapters(ModelBase& model);

/// Freezes all parameters, before the model has a task's modules, and adds an adapter to each
/// module whose dotted name is one of `targets` or ends with it (`*` and `?` stand for any
/// letters): peft's target_modules. Throws UserError for a target that matches none, with the
/// config's `field` and what there is.
void add_adapters(ModelBase& model, const std::vector<std::string>& targets,
                  const AdapterOptions& options, std::string_view field);

}  // namespace phalanx
