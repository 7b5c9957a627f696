// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/config/tree/node.h"
#include "trainer/registry/hugging_face.h"

namespace phalanx {

class DeferredInit;
class ModelBase;

/// Throws UserError for a value, at or below `key`, that refers to another one: a file of others
/// must not make the config read this machine's environment.
void require_literal(const config::Node& node, const std::string& key);

/// The section `model` of a config, alone, with overrides of it, checked and with all defaults.
/// Throws ConfigError with every mistake, and UserError for a value of the section that refers to
/// another one.
config::Node resolved_model(config::Node section, std::span<const std::string> overrides = {});

/// What a registered model is in Hugging Face's libraries. Throws UserError for an unknown name,
/// and for a model that does not say.
const HuggingFaceModel& hugging_face_model(const std::string& name);

/// The registered model of this `model_type`. Throws UserError if none has it.
std::string model_of_type(const std::string& model_type);

/// The model that a resolved section describes, without values, which must not be read.
struct ModelWithoutValues {
  std::shared_ptr<ModelBase> model;
  std::shared_ptr<DeferredInit> deferred;
};
ModelWithoutValues model_without_values(const config::Node& section);

/// The tensors of the model that a resolved section describes; they take no memory, and must not be
/// read.
std::vector<ShardedTensorView> tensors_of_model(const config::Node& section);

}  // namespace phalanx
