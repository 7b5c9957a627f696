// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/load_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <system_error>

#include "trainer/base/joined.h"
#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/terminal.h"
#include "trainer/config/syntax/compose.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/optim/optimizers_section.h"
#include "trainer/run/run_folder.h"
#include "trainer/words/words.h"

namespace phalanx {
namespace {

// Whether a file that is included could not be: what it holds is not known then.
bool lacks_a_file(const config::Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  return std::any_of(all.begin(), all.end(), [](const auto& d) { return d.path == "include"; });
}
// Stands for exp_dir where that is not known yet. YAML has it quoted, as `${exp_dir}` must be.
constexpr std::string_view kUnknownFolder = "⟨exp_dir⟩";

// Which composition a tree asks for; everything else is checked against its declaration.
const TrainerEntry& find_trainer(UserConfig& user) {
  config::Diagnostics& diagnostics = user.mistakes;
  const auto& table = TrainerRegistry::instance().table();
  const config::Node* name = user.tree.find("name");
  const bool is_given = name != nullptr && name->is_scalar() && !name->is_missing();
  if (is_given && table.contains(name->text)) {
    user.trainer = name->text;
    return TrainerRegistry::instance().at(user.trainer);
  }
  if (is_given) {
    diagnostics.add(name->origin, "name", unknown_class("trainer", name->text, table.names()));
  } else if (name != nullptr || !lacks_a_file(diagnostics)) {
    diagnostics.add(name != nullptr ? name->origin : user.tree.origin, "name",
                    "is missing: which registered trainer; there are: " + joined(table.names()));
  }
  throw config::ConfigError(diagnostics);
}

std::string usable_as_folder(std::string name) {
  for (char& c : name) {
    const bool keeps = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ||
                       c == '=' || c == '-' || c == '+' || c == ',';
    if (!keeps) c = '_';
  }
  constexpr size_t kLongestName = 200;  // file systems allow 255 bytes
  if (name.size() > kLongestName) name.resize(kLongestName);
  return name;
}

bool names_the_run(const std::string& override) {
  std::string_view key = override;
  while (key.starts_with('+')) key.remove_prefix(1);
  return key.starts_with("exp_dir=") || key.starts_with("exp_name=");
}

// Behind the first argument, which is a file whatever it looks like.
bool looks_like_an_override(const std::string& argument) {
  std::error_code error;
  if (std::filesystem::exists(argument, error)) return false;
  // No key holds a slash.
  const std::string key = argument.substr(0, argument.find('='));
  if (key.find('/') != std::string::npos) return false;
  return key.size() < argument.size() || key.starts_with('~') ||
         (!key.ends_with(".yaml") && !key.ends_with(".yml"));
}

// Without an exp_name: the configs' stems and the sorted overrides, except those that name the
// run.
std::string name_by_arguments(const UserConfig& user) {
  std::vector<std::string> overrides;
  std::copy_if(user.overrides.begin(), user.overrides.end(), std::back_inserter(overrides),
               [](const auto& override) { return !names_the_run(override); });
  std::sort(overrides.begin(), overrides.end());
  std::string name = joined(user.files, "+", [](const auto& file) { return file.stem().string(); });
  for (const auto& override : overrides) name += "." + override;
  return usable_as_folder(name);
}

// Why an exp_name cannot name the folder in runs/; empty for one that can.
std::string folder_problem(const std::string& name) {
  const auto is_control = [](unsigned char c) { return std::iscntrl(c) != 0; };
  if (name.empty()) return "is empty";
  if (name == "." || name == "..") return "is a way to another one";
  if (name.find('/') != std::string::npos) return "holds a /";
  if (std::any_of(name.begin(), name.end(), is_control)) {
    return "holds a line end or another control character";
  }
  return {};
}

void check_exp_name(const config::Node& resolved, config::Diagnostics& diagnostics) {
  const config::Node* name = resolved.find("exp_name");
  if (name == nullptr || name->is_null()) return;
  const std::string problem = folder_problem(name->text);
  if (problem.empty()) return;
  diagnostics.add(name->origin, "exp_name",
                  "names a folder in runs/, but " + problem +
                      "; give a plain name, or choose a folder by exp_dir");
}

constexpr std::array<std::string_view, 4> kOfTraining{"task", "optimizer", "optimizers",
                                                      "lr_scheduler"};

bool is_of_training(std::string_view section) {
  return std::find(kOfTraining.begin(), kOfTraining.end(), section) != kOfTraining.end();
}

const config::Declaration& declaration_for_use(const TrainerEntry& entry) {
  static std::map<const TrainerEntry*, config::Declaration> declarations;
  const auto [found, is_new] = declarations.try_emplace(&entry);
  if (is_new) {
    for (const config::Field& field : entry.declaration().fields()) {
      if (!is_of_training(field.name)) found->second.add_field(field);
    }
    for (const auto& check : entry.declaration().checks()) found->second.add_check(check);
  }
  return found->second;
}

config::Node resolve(const UserConfig& user, const config::Declaration& declaration,
                     const std::optional<std::string>& exp_dir, config::Diagnostics& diagnostics) {
  config::Node tree = user.tree;
  const config::Node* given = tree.find("exp_dir");
  const bool is_unknown = !exp_dir && (given == nullptr || given->is_null() || given->is_missing());
  if (exp_dir) {
    const auto* name = tree.find("exp_name");
    if (name == nullptr || name->is_null()) {
      tree.set("exp_name", config::Node::string(name_by_arguments(user)));
    }
    tree.set("exp_dir", config::Node::string(*exp_dir));
  } else if (is_unknown) {
    tree.set("exp_dir", config::Node::string(std::string(kUnknownFolder)));
  }
  config::Node resolved = config::resolve(
      declaration, std::move(tree), diagnostics,
      {.known = {{"ml.exp_name", name_by_arguments(user)}}, .explain_key = &word_of_others});
  if (is_unknown && diagnostics.empty()) check_exp_name(resolved, diagnostics);
  diagnostics.throw_if_any();
  if (is_unknown) resolved.set("exp_dir", config::Node::plain("???"));
  return resolved;
}

// Applies the overrides, then complete_config of the mixins.
void complete(UserConfig& user) {
  for (const auto& override : user.overrides) {
    config::apply_override(user.tree, override, user.mistakes);
  }
  user.entry = &find_trainer(user);
  complete_optimizers(user.tree);
  user.entry->complete_config(user.tree);
}

}  // namespace

bool is_given(const UserConfig& user, std::string_view field) {
  const config::Node* value = user.tree.find(field);
  return value != nullptr && !value->is_missing() && !value->is_null();
}

UserConfig load_config(Arguments arguments) {
  if (arguments.empty())
    throw UserError("a config file is needed: trainer CONFIG [CONFIG ...] [key=value ...]");
  UserConfig user;
  for (const auto& argument : arguments) {
    if (!user.files.empty() && looks_like_an_override(argument)) {
      user.overrides.push_back(argument);
    } else {
      user.files.emplace_back(argument);
    }
  }
  for (const auto& file : user.files) require_readable(file);
  user.tree = config::read_files(user.files, user.mistakes);
  complete(user);
  return user;
}

UserConfig config_of(config::Node tree, Arguments overrides) {
  UserConfig user;
  user.overrides.assign(overrides.begin(), overrides.end());
  user.tree = std::move(tree);
  complete(user);
  return user;
}

std::string experiment_name(const UserConfig& user) {
  if (const auto* given = user.tree.find("exp_name"); given != nullptr && !given->is_null()) {
    const std::string name = resolve_config(user, std::nullopt).find("exp_name")->text;
    if (name.find(kUnknownFolder) == name.npos) return name;
    throw UserError("exp_name refers to exp_dir, which is named after it; give exp_dir");
  }
  return name_by_arguments(user);
}

config::Node resolve_config(const UserConfig& user, const std::optional<std::string>& exp_dir) {
  config::Diagnostics diagnostics = user.mistakes;
  return resolve(user, user.entry->declaration(), exp_dir, diagnostics);
}

config::Node resolve_for_use(const UserConfig& user, const std::string& exp_dir) {
  UserConfig used = user;
  std::erase_if(used.tree.entries, [](const auto& entry) { return is_of_training(entry.key); });
  config::Diagnostics diagnostics = used.mistakes;
  return resolve(used, declaration_for_use(*used.entry), exp_dir, diagnostics);
}

config::Node checked_config(const UserConfig& user) {
  config::Diagnostics diagnostics = user.mistakes;
  config::Node resolved = resolve(user, user.entry->declaration(), std::nullopt, diagnostics);
  for (const auto& warning : diagnostics.warnings()) {
    print_warning(config::to_string(warning, message_width()));
  }
  return resolved;
}

config::KnownWord word_of_others(std::string_view path) {
  words::Explanation found = words::look_up(path);
  return {.text = std::move(found.text),
          .is_of_place = found.is_of_place,
          .fields = std::move(found.fields)};
}

std::string refer_to_exp_dir(std::string printed) {
  for (size_t at = 0; (at = printed.find(kUnknownFolder, at)) != printed.npos;) {
    printed.replace(at, kUnknownFolder.size(), "${exp_dir}");
  }
  return printed;
}

}  // namespace phalanx
