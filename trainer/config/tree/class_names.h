// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

/// The key by which a section picks a class.
inline constexpr const char* kName = "name";

/// The names of a section's presets.
std::vector<std::string> preset_names(const Declaration& declaration);

/// The names of the presets of all classes.
std::vector<std::string> presets_of_all(const Choice& choice);

/// All that a choice can be set to: its classes, then their presets.
std::vector<std::string> names_and_presets(const Choice& choice);

/// The class that has a preset of this name, or empty.
std::string class_of_preset(const Choice& choice, std::string_view preset);

/// Why a section has no preset of this name. `what` is the section ("optimizer 'sgd'"); `choice` is
/// where its class was chosen, or nullptr: a later layer may have meant a preset of another class.
std::string unknown_preset(const Declaration& declaration, const Choice* choice,
                           const std::string& what, const std::string& preset);

}  // namespace phalanx::config
