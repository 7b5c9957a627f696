// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/ambiguities.h"

#include <algorithm>
#include <exception>
#include <map>

#include "trainer/registry/registry.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

// "optimizer 'sgd' (trainer/optim/optimizers/sgd.cc:120)"
std::string named(const std::string& kind, const std::string& name) {
  std::string text = kind + " '" + name + "'";
  for (const NameTable* table : NameTable::all()) {
    if (table->kind() != kind) continue;
    for (const Registration& registration : table->registrations()) {
      if (registration.name != name) continue;
      text += " (" + registration.file + ":" + std::to_string(registration.line) + ")";
    }
  }
  return text;
}

std::vector<std::string> ambiguities(const config::Choice& choice) {
  std::vector<std::string> messages;
  const std::vector<std::string> names = choice.names();
  std::map<std::string, std::string> class_of_preset;
  for (const std::string& name : names) {
    const config::Declaration& declaration = *choice.find(name);
    const std::string who = named(choice.kind, name);
    if (declaration.find("name") != nullptr) {
      messages.push_back(who +
                         " has a field 'name', by which a config picks the class; call the "
                         "field otherwise");
    }
    for (const config::Preset& preset : declaration.presets()) {
      const std::string whose = "the preset '" + preset.name + "' of " + who;
      if (std::find(names.begin(), names.end(), preset.name) != names.end()) {
        messages.push_back(whose + " has the name of " + named(choice.kind, preset.name));
      }
      const auto [other, is_new] = class_of_preset.emplace(preset.name, name);
      if (!is_new) {
        messages.push_back(whose + " is one of " + named(choice.kind, other->second) + " too");
      }
    }
  }
  return messages;
}

}  // namespace

std::vector<std::string> ambiguities(const config::Declaration& declaration) {
  std::vector<std::string> messages;
  for (const config::Field& field : declaration.fields()) {
    if (!field.type.choice) continue;
    for (std::string& message : ambiguities(*field.type.choice))
      messages.push_back(std::move(message));
  }
  return messages;
}

std::vector<std::string> ambiguous_registrations() {
  std::vector<std::string> messages;
  const auto& trainers = TrainerRegistry::instance();
  for (const std::string& name : trainers.table().names()) {
    try {
      for (std::string& message : ambiguities(trainers.at(name).declaration())) {
        // Trainers choose from the same classes.
        const bool is_known =
            std::find(messages.begin(), messages.end(), message) != messages.end();
        if (!is_known) messages.push_back(std::move(message));
      }
    } catch (const std::exception& error) {
      messages.push_back(error.what());
    }
  }
  return messages;
}

}  // namespace phalanx
