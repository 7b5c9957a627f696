// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/config/show_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/base/wrap.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/config/trainer_order.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/minimal.h"
#include "trainer/config/text/starter.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/fill.h"

namespace phalanx {
namespace {

const TrainerRegistry& trainers() { return TrainerRegistry::instance(); }

// The trainer where a config names none: the one of every mixin, if the program has it.
std::string usual_trainer() {
  const auto names = ordered_trainers();
  if (names.empty()) throw UserError("no trainer is registered in this program");
  return names.front();
}

// The usual trainer's, or of a section that it does not have, the first one's that does.
const config::Declaration& declaration_with(const std::string& path) {
  const std::string section = path.substr(0, path.find('.'));
  const config::Declaration& usual = trainers().at(usual_trainer()).declaration();
  if (usual.find(section) != nullptr) return usual;
  for (const auto& name : ordered_trainers()) {
    const config::Declaration& declaration = trainers().at(name).declaration();
    if (declaration.find(section) != nullptr) return declaration;
  }
  return usual;
}

// Names the only class of each kind that a config must choose from, where none is named.
void choose_only_classes(const config::Declaration& declaration, config::Node& tree) {
  for (const auto& field : declaration.fields()) {
    if (!field.type.choice || !field.mandatory) continue;
    const auto* given = tree.find(field.name);
    const bool is_left_out = given != nullptr && given->is_null() && field.type.nullable;
    const bool named =
        given != nullptr && (given->is_scalar() || given->find("name") != nullptr || is_left_out);
    const auto names = field.type.choice->names();
    if (named) continue;
    if (names.size() != 1) {
      throw UserError(fmt::format("which {0}? Add {0}=NAME; there are: {1}", field.name,
                                  fmt::join(names, ", ")));
    }
    config::Diagnostics none;
    config::apply_override(tree, field.name + "=" + names.front(), none);
  }
}

bool is_within(const std::string& path, const std::string& section) {
  return path == section || path.starts_with(section + ".");
}

// What is known of a config that has mistakes: classes, defaults and what is written. Throws the
// mistakes that leave the class open to which `path` belongs.
config::Node filled_config(const UserConfig& user, const std::string& path,
                           const config::ConfigError& error) {
  config::Node tree = user.tree;
  config::Diagnostics open;
  config::fill(user.entry->declaration(), tree, {}, nullptr, open);
  for (const auto& field : user.entry->declaration().fields()) {
    if (!field.type.choice || !is_within(path, field.name)) continue;
    const config::Node* name = tree.find_path(field.name + ".name");
    if (name != nullptr && field.type.choice->find(name->text) != nullptr) continue;
    config::Diagnostics mistakes;
    for (const auto& mistake : error.mistakes().all()) {
      if (is_within(mistake.path, field.name)) {
        mistakes.add(mistake.origin, mistake.path, mistake.message);
      }
    }
    mistakes.throw_if_any();
  }
  return tree;
}

// A config need not be whole to be explained: what a class has is asked while it is written.
config::Node explained_config(const UserConfig& user, const std::string& path) {
  try {
    return checked_config(user);
  } catch (const config::ConfigError& error) {
    if (!user.mistakes.empty()) throw;
    config::Node tree = filled_config(user, path, error);
    const size_t count = error.mistakes().all().size();
    print_warning(fmt::format(
        "this config is not whole, so values are shown as they are written: `trainer config print` "
        "shows its {}",
        count == 1 ? "mistake" : fmt::format("{} mistakes", count)));
    return tree;
  }
}

// Layers need not name a trainer, as long as they do not stand alone.
UserConfig explained_layers(Arguments arguments) {
  try {
    return load_config(arguments);
  } catch (const config::ConfigError& error) {
    const auto names = ordered_trainers();
    const auto& mistakes = error.mistakes().all();
    if (names.empty() || mistakes.size() != 1 || mistakes.front().path != "name") throw;
    std::vector<std::string> named(arguments.begin(), arguments.end());
    named.push_back("+name=" + names.front());
    const UserConfig user = load_config(named);
    if (!user.mistakes.empty()) throw;  // It names one, and that is wrong.
    return user;
  }
}

// What a config still lacks, as lines of a comment; empty where nothing is missing.
std::string still_to_be_given(config::Node tree) {
  try {
    resolve_config(config_of(std::move(tree), {}), std::nullopt);
    return "";
  } catch (const config::ConfigError& error) {
    constexpr std::string_view kLine = "\n#   ";
    constexpr size_t kWidth = 100;
    std::string text = "# still to be given:";
    for (const auto& mistake : error.mistakes().all()) {
      std::string lines =
          config::wrap(mistake.path + ": " + mistake.message, kWidth - kLine.size(), 2);
      for (size_t at = 0; (at = lines.find('\n', at)) != lines.npos; at += kLine.size()) {
        lines.replace(at, 1, kLine);
      }
      text += std::string(kLine) + lines;
    }
    return text + "\n";
  }
}

bool is_field(const std::string& path) {
  const auto fields = config::field_entries(declaration_with(path), path);
  return std::ranges::any_of(
      fields, [&](const config::FieldEntry& field) { return is_within(field.path, path); });
}

// `PATH [CONFIG ...] [key=value ...]` in another order, or with several fields.
void require_one_path(Arguments arguments) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path first = arguments.front();
  const bool names_file = first.extension() == ".yaml" || first.extension() == ".yml";
  if (names_file && fs::exists(first, unknown)) {
    throw UserError(
        fmt::format("'{0}' is a file, and the field comes first: trainer config explain PATH {0}",
                    arguments.front()));
  }
  for (const std::string& argument : arguments.subspan(1)) {
    if (fs::exists(argument, unknown) || !is_field(argument)) continue;
    throw UserError(fmt::format(
        "'{}' is a field, and no config of this name is there: explain takes one field, or one "
        "section with all its fields",
        argument));
  }
}

}  // namespace

std::string printed_config(const UserConfig& user, PrintForm form) {
  config::Node resolved = checked_config(user);
  if (form.minimal) resolved = config::minimal(user.entry->declaration(), resolved);
  if (form.json) return refer_to_exp_dir(config::to_json(resolved)) + "\n";
  return refer_to_exp_dir(config::print(resolved, {.with_origins = true, .mark_defaults = true}));
}

std::string explained_path(Arguments arguments, const config::HelpOptions& options) {
  if (arguments.empty()) {
    throw UserError("which field? trainer config explain PATH [CONFIG ...] [key=value ...]");
  }
  const std::string& path = arguments.front();
  require_one_path(arguments);
  if (arguments.size() == 1) return config::explain(declaration_with(path), path, nullptr, options);
  const UserConfig user = explained_layers(arguments.subspan(1));
  const config::Node resolved = explained_config(user, path);
  return refer_to_exp_dir(config::explain(user.entry->declaration(), path, &resolved, options));
}

std::string starter_config(Arguments arguments) {
  config::Diagnostics diagnostics;
  config::Node tree = config::Node::map();
  config::apply_override(tree, "name=" + usual_trainer(), diagnostics);
  config::apply_override(tree, "training.max_steps=1000", diagnostics);
  for (const auto& argument : arguments) config::apply_override(tree, argument, diagnostics);
  diagnostics.throw_if_any();
  const auto* name = tree.find("name");
  const auto& declaration = trainers().at(name->text).declaration();
  choose_only_classes(declaration, tree);
  const std::string missing = still_to_be_given(tree);
  config::fill(declaration, tree, {}, &word_of_others, diagnostics);
  diagnostics.throw_if_any();
  if (auto* exp_dir = tree.find("exp_dir"); exp_dir != nullptr && exp_dir->is_missing()) {
    *exp_dir = config::Node::null();  // filled in by each run
  }
  return "# What is commented out is the default; what is ??? must be given. `trainer config "
         "print`\n"
         "# shows all of it resolved, `trainer config explain PATH` what a field means.\n" +
         missing + config::starter(declaration, tree);
}

std::string config_reference() {
  std::string text =
      "# Fields of a config\n\n"
      "Made by `trainer config reference` from the declarations in the code; a test compares them. "
      "[config_files.md](config_files.md) says how values are written, "
      "[overrides.md](overrides.md) how files and the command line are laid over each other.\n";
  std::set<std::string> known;
  for (const auto& name : ordered_trainers()) {
    const auto& declaration = trainers().at(name).declaration();
    const bool known_before = !known.empty();
    std::vector<config::FieldEntry> fields;
    for (auto& field : config::field_entries(declaration)) {
      if (known.insert(field.condition + "|" + field.path).second) {
        fields.push_back(std::move(field));
      }
    }
    if (fields.empty()) continue;
    text +=
        fmt::format("\n# {} `{}`\n", known_before ? "Beside these, of trainer" : "Trainer", name);
    text += config::reference(fields);
  }
  return text;
}

}  // namespace phalanx
