// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/completion_table.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "trainer/config/tree/fields.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

using Count = Positional::Count;
using Words = std::vector<std::string>;

std::string line(std::string_view kind, std::string_view about, const auto& words) {
  return words.empty() ? "" : fmt::format("{}\t{}\t{}\n", kind, about, fmt::join(words, "\t"));
}

// The commands: a name and another behind it, without a blank before the first.
std::string behind(const std::string& names, std::string_view name) {
  return fmt::format("{}{}{}", names, names.empty() ? "" : " ", name);
}

std::string takes_word(const Positional& positional) {
  // In Takes' order.
  constexpr std::array kNames{"config", "run", "key", "override", "word", "path"};
  return fmt::format("{}{}", kNames[static_cast<std::size_t>(positional.takes)],
                     positional.count == Count::any ? "*" : "");
}

std::string word_lines(const Command& command, const std::string& names, Words before) {
  const Words words = command.words(before);
  std::string text = line("word", names, words);
  for (const std::string& word : words) {
    before.push_back(word);
    text += word_lines(command, behind(names, word), before);
    before.pop_back();
  }
  return text;
}

std::string command_lines(const Command& command, const std::string& names) {
  Words actions, flags{std::string(kHelpFlag)}, takes;
  for (const Command& action : command.actions) actions.emplace_back(action.name);
  for (const Flag& flag : command.flags) {
    if (flag.takes == Flag::Takes::nothing) flags.emplace_back(flag.name);
    using Takes = Flag::Takes;
    const bool is_path = flag.takes == Takes::new_file || flag.takes == Takes::path;
    const bool is_free = flag.takes == Takes::count || flag.takes == Takes::text;
    if (is_path) flags.push_back(fmt::format("{}=/", flag.name));
    if (is_free) flags.push_back(fmt::format("{}=", flag.name));
    for (const FlagValue& value : flag.values) {
      flags.push_back(fmt::format("{}={}", flag.name, value.name));
    }
  }
  for (const Positional& positional : command.positionals) takes.push_back(takes_word(positional));
  std::string text =
      line("action", names, actions) + line("flag", names, flags) + line("takes", names, takes);
  if (command.words != nullptr) text += word_lines(command, names, {});
  for (const Command& action : command.actions) {
    text += command_lines(action, behind(names, action.name));
  }
  return text;
}

// "optimizer" of "optimizer.lr"; empty at the top.
std::string section_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// What is in a section, and what a field can be, for all trainers and all classes together.
class ConfigLines {
 public:
  void add(const config::FieldEntry& field) {
    // Below these stand numbers and names of the user's.
    if (field.path.find("[]") != std::string::npos) return;
    if (field.path.find(".NAME") != std::string::npos) return;
    add_key(field.path, field.is_section ? "." : "=");
    add_values(field.path, field.values);
    if (field.type.starts_with("a path")) add_values(field.path, {"/"});
    const std::string section = section_of(field.path);
    if (!section.empty() && field.path == section + ".name") add_choice(section, field.values);
    if (!field.presets.empty()) add_presets(field.is_section ? field.path : section, field.presets);
  }

  void add_values(const std::string& path, const Words& values) {
    if (!values.empty()) values_[path].insert(values.begin(), values.end());
  }

  std::string text() const {
    std::string text;
    for (const auto& [section, keys] : keys_) text += line("key", section, keys);
    for (const auto& [path, values] : values_) text += line("value", path, values);
    return text;
  }

 private:
  void add_key(const std::string& path, const std::string& end) {
    const std::string section = section_of(path);
    keys_[section].insert(path.substr(section.empty() ? 0 : section.size() + 1) + end);
  }

  // A section's short form is its name.
  void add_choice(const std::string& section, const Words& names) {
    add_key(section, ".");
    add_key(section, "=");
    add_values(section, names);
  }

  void add_presets(const std::string& section, const std::vector<config::Preset>& presets) {
    Words names;
    for (const config::Preset& preset : presets) names.push_back(preset.name);
    for (const std::string& path : {section, section + "." + config::kPreset}) {
      add_key(path, "=");
      add_values(path, names);
    }
  }

  std::map<std::string, std::set<std::string>> keys_;
  std::map<std::string, std::set<std::string>> values_;
};

}  // namespace

std::string completion_table(const NamedCommand& program) {
  std::string text = command_lines(*program.command, "");
  ConfigLines config;
  const auto& registry = TrainerRegistry::instance();
  config.add_values("name", registry.table().names());
  for (const auto& name : registry.table().names()) {
    for (const auto& field : config::field_entries(registry.at(name).declaration())) {
      config.add(field);
    }
  }
  return text + config.text();
}

}  // namespace phalanx
