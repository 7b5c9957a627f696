// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/config/tree/node.h"

namespace phalanx {

/// Takes a model's fields from a folder of Hugging Face's libraries into a config that is not
/// resolved yet: those that neither the section `model` nor its preset sets, and the model's name
/// if it has none. Leaves a model alone that has no names of theirs. Throws UserError for a folder
/// whose model there is not here, or that is another model than the section names.
void take_model_of(const std::filesystem::path& folder, config::Node& tree);

/// Throws UserError naming every field of a resolved section `model` that contradicts the folder's
/// config.json, except those that a training may choose (HuggingFaceModel::free_in_training), and
/// of the size of its vocabulary where that may differ.
void require_model_of(const std::filesystem::path& folder, const config::Node& section,
                      bool vocabulary_may_differ = false);

}  // namespace phalanx
