// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/class_names.h"

#include <utility>

#include "trainer/base/nearest.h"

namespace phalanx::config {

std::vector<std::string> preset_names(const Declaration& declaration) {
  std::vector<std::string> names;
  for (const Preset& preset : declaration.presets()) names.push_back(preset.name);
  return names;
}

std::vector<std::string> presets_of_all(const Choice& choice) {
  std::vector<std::string> all;
  for (const std::string& name : choice.names()) {
    for (std::string& preset : preset_names(*choice.find(name))) all.push_back(std::move(preset));
  }
  return all;
}

std::vector<std::string> names_and_presets(const Choice& choice) {
  std::vector<std::string> all = choice.names();
  for (std::string& preset : presets_of_all(choice)) all.push_back(std::move(preset));
  return all;
}

std::string class_of_preset(const Choice& choice, std::string_view preset) {
  for (const std::string& name : choice.names()) {
    if (choice.find(name)->find_preset(preset) != nullptr) return name;
  }
  return "";
}

std::string unknown_preset(const Declaration& declaration, const Choice* choice,
                           const std::string& what, const std::string& preset) {
  if (choice == nullptr) return unknown_name("preset", preset, preset_names(declaration));
  const std::string owner = class_of_preset(*choice, preset);
  if (!owner.empty()) {
    return "'" + preset + "' is a preset of " + choice->kind + " '" + owner +
           "', but the section names " + what + "; leave out the name or the preset";
  }
  return unknown_name("preset", preset, presets_of_all(*choice));
}

}  // namespace phalanx::config
