// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/class_names.h"

#include <utility>

namespace phalanx::config {

std::vector<std::string> preset_names(const Declaration& declaration) {
  std::vector<std::string> names;
  for (const Preset& preset : declaration.presets()) names.push_back(preset.name);
  return names;
}

std::vector<std::string> names_and_presets(const Choice& choice) {
  std::vector<std::string> all = choice.names();
  for (const std::string& name : choice.names()) {
    for (std::string& preset : preset_names(*choice.find(name))) all.push_back(std::move(preset));
  }
  return all;
}

std::string class_of_preset(const Choice& choice, std::string_view preset) {
  for (const std::string& name : choice.names()) {
    if (choice.find(name)->find_preset(preset) != nullptr) return name;
  }
  return "";
}

}  // namespace phalanx::config
