// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/cli/command.h"
#include "trainer/config/tree/node.h"
#include "trainer/registry/hugging_face.h"

namespace phalanx {

/// The section `model` of a config, alone, with overrides of it, checked and with all defaults.
/// Throws ConfigError with every mistake, and UserError for a value of the section that refers to
/// another one.
config::Node resolved_model(config::Node section, Arguments overrides = {});

/// What a registered model is in Hugging Face's libraries. Throws UserError for an unknown name,
/// and for a model that does not say.
const HuggingFaceModel& hugging_face_model(const std::string& name);

/// The registered model of this `model_type`. Throws UserError if none has it.
std::string model_of_type(const std::string& model_type);

/// The tensors of the model that a resolved section describes; they take no memory, and must not be
/// read.
std::vector<ShardedTensorView> tensors_of_model(const config::Node& section);

}  // namespace phalanx
