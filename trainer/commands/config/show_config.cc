// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/config/show_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "trainer/base/user_error.h"
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

// The first registered trainer by name: what `trainer` means where a config names none.
const config::Declaration& first_declaration() {
  const auto names = trainers().table().names();
  if (names.empty()) throw UserError("no trainer is registered in this program");
  return trainers().at(names.front()).declaration();
}

// Names the only class of each kind that a config must choose from, where none is named.
void choose_only_classes(const config::Declaration& declaration, config::Node& tree) {
  for (const auto& field : declaration.fields()) {
    if (!field.type.choice || !field.mandatory) continue;
    const auto* given = tree.find(field.name);
    const bool named = given != nullptr && (given->is_scalar() || given->find("name") != nullptr);
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
  if (arguments.size() == 1) return config::explain(first_declaration(), path, nullptr, options);
  const UserConfig user = load_config(arguments.subspan(1));
  const config::Node resolved = checked_config(user);
  return refer_to_exp_dir(config::explain(user.entry->declaration(), path, &resolved, options));
}

std::string starter_config(Arguments arguments) {
  const auto names = trainers().table().names();
  config::Diagnostics diagnostics;
  config::Node tree = config::Node::map();
  config::apply_override(tree, "name=" + (names.empty() ? "" : names.front()), diagnostics);
  config::apply_override(tree, "training.max_steps=1000", diagnostics);
  for (const auto& argument : arguments) config::apply_override(tree, argument, diagnostics);
  diagnostics.throw_if_any();
  const auto* name = tree.find("name");
  const auto& declaration = trainers().at(name->text).declaration();
  choose_only_classes(declaration, tree);
  config::fill(declaration, tree, {}, diagnostics);
  diagnostics.throw_if_any();
  if (auto* exp_dir = tree.find("exp_dir"); exp_dir != nullptr && exp_dir->is_missing()) {
    *exp_dir = config::Node::null();  // filled in by each run
  }
  return "# What is commented out is the default; what is ??? must be given. `trainer config "
         "print`\n"
         "# shows all of it resolved, `trainer config explain PATH` what a field means.\n" +
         config::starter(declaration, tree);
}

std::string config_reference() {
  std::string text =
      "# Fields of a config\n\n"
      "Made by `trainer config reference` from the declarations in the code; a test compares them. "
      "[config_files.md](config_files.md) says how values are written, "
      "[overrides.md](overrides.md) how files and the command line are laid over each other.\n";
  std::set<std::string> known;
  for (const auto& name : trainers().table().names()) {
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
