// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/ineffective.h"
#include "trainer/config/tree/older_runs.h"
#include "trainer/io/file.h"
#include "trainer/loop/next_command.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/told_changes.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// What the newest checkpoint says that the run is, whatever has become of config.yaml since;
// nothing without one that says it.
std::optional<config::Node> read_of_checkpoint(const fs::path& exp_dir) {
  const std::optional<Manifest> newest = newest_manifest(exp_dir);
  if (!newest) return std::nullopt;
  const std::string name =
      (exp_dir / kCheckpointsFolder / newest_checkpoint(exp_dir) / kManifestFile).string();
  try {
    config::Node earlier = config::parse_json(newest->config, name);
    return earlier.entries.empty() ? std::nullopt : std::optional(std::move(earlier));
  } catch (const UserError&) {
    return std::nullopt;  // as where the manifest itself cannot be read
  }
}

// What a run's folder says that the run is; nothing for a folder without a run.
std::optional<config::Node> read_earlier(const fs::path& exp_dir) {
  if (!fs::exists(exp_dir / kConfigFile)) return std::nullopt;
  require_readable(exp_dir / kConfigFile);
  if (auto earlier = read_of_checkpoint(exp_dir)) return earlier;
  config::Diagnostics diagnostics;
  config::Node earlier = config::read_file(exp_dir / kConfigFile, diagnostics);
  diagnostics.throw_if_any();
  return earlier;
}

std::string folder_in(const config::Node& earlier) {
  const config::Node* const exp_dir = earlier.find("exp_dir");
  return exp_dir == nullptr || !exp_dir->is_scalar() || exp_dir->is_missing() ? "" : exp_dir->text;
}

// Whether a text goes on without a letter or digit on both sides of a part of it.
bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const auto is_of_word = [&](size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  return (begin == 0 || !is_of_word(begin - 1)) && !is_of_word(end);
}

// A value with another folder wherever a text in it names the one that it was made in.
config::Node moved(config::Node value, const std::string& from, const std::string& to) {
  for (config::Node& item : value.items) item = moved(std::move(item), from, to);
  for (config::Entry& entry : value.entries) entry.value = moved(std::move(entry.value), from, to);
  if (config::core_type(value) != config::ScalarType::string) return value;
  for (size_t at = 0; (at = value.text.find(from, at)) != std::string::npos;) {
    const bool is_folder = stands_alone(value.text, at, at + from.size());
    if (is_folder) value.text.replace(at, from.size(), to);
    at += is_folder ? to.size() : 1;
  }
  return value;
}

// A kept config as that of a run in `exp_dir`; nothing for one that is no config of this trainer.
std::optional<config::Node> resolve_kept(config::Node tree, UserConfig user,
                                         const fs::path& exp_dir) {
  user.tree = std::move(tree);
  try {
    return resolve_config(user, exp_dir.string());
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Whether a kept config would make the run that `resolved` is.
bool makes(const std::string& text, const UserConfig& user, const config::Node& resolved,
           const fs::path& exp_dir) {
  try {
    config::Diagnostics diagnostics;
    config::Node tree = config::parse_yaml(text, std::string(kConfigFile), diagnostics);
    diagnostics.throw_if_any();
    const auto kept = resolve_kept(std::move(tree), user, exp_dir);
    return kept && config::same_value(*kept, resolved);
  } catch (const UserError&) {
    return false;
  }
}

// What the comment at the end of a value's line says of where it came from; empty without one.
std::string origin_comment(const config::Origin& origin) {
  constexpr std::string_view kMark = "  # ";
  std::string_view text = origin.source->text;
  for (int line = 1; line < origin.line; ++line) text.remove_prefix(text.find('\n') + 1);
  text = text.substr(0, text.find('\n'));
  const size_t mark = text.rfind(kMark);
  return mark == text.npos ? "" : std::string(text.substr(mark + kMark.size()));
}

// A value that was read from the config.yaml that is to be replaced came from where that says: its
// own lines are about to go.
void keep_origins(config::Node& node, const fs::path& exp_dir) {
  for (config::Node& item : node.items) keep_origins(item, exp_dir);
  for (config::Entry& entry : node.entries) keep_origins(entry.value, exp_dir);
  if (!node.origin.source || node.origin.line == 0) return;
  std::error_code error;
  if (!fs::equivalent(node.origin.source->name, exp_dir / kConfigFile, error)) return;
  const std::string earlier = origin_comment(node.origin);
  node.origin = {};
  if (earlier.empty()) return;  // a default
  node.origin.source = std::make_shared<const config::Source>(
      config::Source{config::Source::Kind::file, earlier, ""});
}

std::string print_without_folder(config::Node resolved, const fs::path& exp_dir) {
  resolved.set("exp_dir", config::Node::plain("???"));
  keep_origins(resolved, exp_dir);
  return config::print(resolved, {.with_origins = true});
}

// With `${exp_dir}` wherever the values came from it.
std::string print_with_references(UserConfig user, const config::Node& resolved,
                                  const fs::path& exp_dir) {
  user.tree.set("exp_dir", config::Node::plain("???"));
  user.tree.set("exp_name", *resolved.find("exp_name"));
  return refer_to_exp_dir(print_without_folder(resolve_config(user, std::nullopt), exp_dir));
}

std::string print_kept(const UserConfig& user, const config::Node& resolved,
                       const fs::path& exp_dir) {
  try {
    std::string text = print_with_references(user, resolved, exp_dir);
    if (makes(text, user, resolved, exp_dir)) return text;
  } catch (const UserError&) {
    // Some value wants what only a true folder gives it; then it stays as it is here.
  }
  return print_without_folder(resolved, exp_dir);
}

// The file's first lines: how to use it. With the program's usual name: the file stays as it is
// when the run goes on from a binary at another place, or on another host.
std::string header(const fs::path& exp_dir, const config::Node& resolved) {
  const std::string command = "trainer " + config::shell_word((exp_dir / kConfigFile).string());
  const config::Node* resume = resolved.find_path("checkpoint.resume");
  const bool is_refused = resume != nullptr && resume->text == "never";
  return fmt::format(
      "{0}\n"
      "# Another run that repeats it:  {1}\n"
      "# To go on with this one:       {1} {2}{3}\n",
      config::kWholeConfig, command, config::argument("exp_dir", exp_dir.string()),
      is_refused ? " checkpoint.resume=auto" : "");
}

bool is_forced(const UserConfig& user, const std::string& path) {
  return std::any_of(user.overrides.begin(), user.overrides.end(),
                     [&](const auto& override) { return config::is_forced(override, path); });
}

std::optional<config::Node> value_at(const config::Node& tree, const std::string& path) {
  const config::Node* node = tree.find_path(path);
  return node == nullptr ? std::nullopt : std::optional(*node);
}

constexpr std::string_view kData = "task.data.";

// Whether a dotted path names a key of a map, which the user chose, and no declared field.
bool is_key_of_map(const config::Declaration& declaration, std::string_view path,
                   const config::Node& resolved) {
  const size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  const config::Field* field = declaration.find(name);
  const config::Node* value = resolved.find(name);
  if (field == nullptr || value == nullptr || dot == std::string_view::npos) return false;
  if (field->type.kind == config::Type::Kind::map) return true;
  const config::Declaration* section = config::section_of(field->type, *value);
  return section != nullptr && is_key_of_map(*section, path.substr(dot + 1), *value);
}

// A field that the program learned since then had no value that could have changed. A key that the
// user chose, or an element of a list, was not there before.
bool could_differ(const ConfigChange& change, const config::Declaration& declaration,
                  const config::Node& resolved) {
  if (change.before) return change.before->origin.source != nullptr;
  return change.path.ends_with(']') || is_key_of_map(declaration, change.path, resolved);
}

bool is_true(const config::Node& resolved, std::string_view path) {
  const config::Node* node = resolved.find_path(path);
  return node != nullptr && node->text == "true";
}

// What is compared with the checkpoint itself when the run's ranks and its data are known: the
// samples of a step, and the data.
bool is_judged_later(const std::string& path, const config::Node& resolved) {
  if (path == "training.global_batch_size") return true;
  return path.starts_with(kData) && is_true(resolved, "checkpoint.data_may_change");
}

// Whether the values differ because the run's folder has another name now.
bool is_moved(const ConfigChange& change, const std::string& from, const std::string& to) {
  return !from.empty() && change.before && change.after &&
         config::same_value(moved(*change.before, from, to), *change.after);
}

// Where one of the changed values stands: config.yaml, which somebody has edited, or elsewhere.
bool is_edited(const ConfigChange& change, const fs::path& exp_dir) {
  std::error_code error;
  return change.after && change.after->origin.source &&
         fs::equivalent(change.after->origin.source->name, exp_dir / kConfigFile, error);
}

bool is_same(const std::optional<config::Node>& one, const std::optional<config::Node>& other) {
  if (!one || !other) return !one && !other;
  return config::same_value(*one, *other);
}

struct ChangeSinceStart {
  ConfigChange change;
  bool is_as_saved = false;  // the newest checkpoint has this value, and a start since had another
};

// What differs from the last start: from `earlier`, the config of the newest checkpoint, with
// what starts since it have changed. `could_change` and `has_moved` leave out what is no change of
// a value.
std::vector<ChangeSinceStart> changes_since_last_start(
    const config::Node& earlier, ToldValues told, const config::Node& resolved,
    const std::function<bool(const ConfigChange&)>& could_change,
    const std::function<bool(const ConfigChange&)>& has_moved) {
  std::vector<ChangeSinceStart> changes;
  for (const auto& difference : config::differences(earlier, resolved)) {
    ConfigChange change{.path = difference.path,
                        .before = value_at(earlier, difference.path),
                        .after = value_at(resolved, difference.path)};
    const auto last = told.extract(difference.path);
    if (!could_change(change)) continue;
    const bool is_as_saved = has_moved(change);
    if (!last.empty()) {
      change.before = last.mapped();
    } else if (is_as_saved) {
      continue;
    }
    if (is_same(change.before, change.after) || has_moved(change)) continue;
    changes.push_back({.change = std::move(change), .is_as_saved = is_as_saved});
  }
  for (const auto& [path, value] : told) {
    ConfigChange change{.path = path, .before = value, .after = value_at(resolved, path)};
    if (is_same(change.before, change.after) || !could_change(change) || has_moved(change))
      continue;
    changes.push_back({.change = std::move(change), .is_as_saved = true});
  }
  return changes;
}

// Another trainer may lack fields of the run, or train in another way.
void require_same_trainer(const fs::path& exp_dir, const UserConfig& user,
                          const config::Node& earlier, const config::Node& resolved) {
  const config::Node* before = earlier.find("name");
  const config::Node& now = *resolved.find("name");
  if (before == nullptr || before->text == now.text || is_forced(user, "name")) return;
  const ToldValues told = told_changes(exp_dir);
  const auto last = told.find("name");
  if (last != told.end() && last->second && last->second->text == now.text) return;
  std::string ways = "Go on by its own config: " + command_to_resume(exp_dir.string(), earlier);
  if (!newest_checkpoint(exp_dir).empty() && resolved.find_path("checkpoint.load_from")) {
    ways += fmt::format("\nOr begin a new run of {} with its weights, in another exp_dir, with {}",
                        now.text, config::argument("checkpoint.load_from", exp_dir.string()));
  }
  // What it lacks could not be insisted on: no override makes a field absent.
  const auto differences = config::differences(earlier, resolved);
  const bool has_all_fields = std::ranges::all_of(differences, [&](const auto& difference) {
    return value_at(resolved, difference.path).has_value();
  });
  if (has_all_fields) {
    ways += fmt::format("\nOr insist with ++name={}, which has all fields of {}", now.text,
                        before->text);
  }
  throw UserError(
      fmt::format("{} holds a run of the trainer {}, and name is {} ({}): a run keeps its trainer, "
                  "so write name={}. {}",
                  exp_dir.string(), before->text, now.text, now.origin.text(), before->text, ways));
}

std::string printed(const std::optional<config::Node>& value) {
  return value ? config::print_inline(*value) : "(absent)";
}

}  // namespace

std::string to_string(const ConfigChange& change) {
  const std::string text =
      fmt::format("{}: was {}, now {}", change.path, printed(change.before), printed(change.after));
  return change.after ? fmt::format("{} ({})", text, change.after->origin.text()) : text;
}

std::optional<config::Node> earlier_config(const fs::path& exp_dir, const UserConfig& user) {
  auto earlier = read_earlier(exp_dir);
  return earlier ? resolve_kept(*std::move(earlier), user, exp_dir) : std::nullopt;
}

std::optional<std::string> earlier_exp_name(const fs::path& exp_dir) {
  const auto earlier = read_earlier(exp_dir);
  const config::Node* name = earlier ? earlier->find("exp_name") : nullptr;
  if (name == nullptr || !name->is_scalar()) return std::nullopt;
  return name->text;
}

std::string fields_earlier_lacks(const fs::path& exp_dir, const UserConfig& user) {
  const auto earlier = read_earlier(exp_dir);
  if (!earlier) return {};
  std::string lines;
  for (const auto& path : config::fields_without_value(user.entry->declaration(), *earlier)) {
    lines += path + "\n";
  }
  return lines;
}

std::vector<ConfigChange> check_against_earlier(const fs::path& exp_dir, const UserConfig& user,
                                                const config::Node& resolved) {
  auto earlier = read_earlier(exp_dir);
  if (!earlier) return {};
  require_same_trainer(exp_dir, user, *earlier, resolved);
  const std::string folder = folder_in(*earlier);
  if (auto kept = resolve_kept(*earlier, user, exp_dir)) earlier = std::move(kept);
  const config::Declaration& declaration = user.entry->declaration();
  const auto could_change = [&](const ConfigChange& change) {
    return could_differ(change, declaration, resolved);
  };
  const auto has_moved = [&](const ConfigChange& change) {
    return is_moved(change, folder, exp_dir.string());
  };
  std::vector<ConfigChange> changes;
  std::string refused;
  bool is_by_hand = false;
  bool is_of_data = false;
  for (auto& [change, is_as_saved] : changes_since_last_start(*earlier, told_changes(exp_dir),
                                                              resolved, could_change, has_moved)) {
    const bool is_free = is_as_saved || declaration.resume_may_change(change.path, resolved) ||
                         is_judged_later(change.path, resolved);
    change.is_forced = !is_free && is_forced(user, change.path);
    if (!is_free && !change.is_forced) {
      refused += "\n  " + to_string(change);
      is_of_data = is_of_data || change.path.starts_with(kData);
      is_by_hand = is_by_hand || is_edited(change, exp_dir);
    }
    changes.push_back(std::move(change));
  }
  if (refused.empty()) return changes;
  const std::string way_back =
      is_by_hand ? "Or restore config.yaml, which was edited, from the checkpoint: " +
                       command_to_restore_config(exp_dir)
                 : "The run's own config goes on with it: " +
                       command_to_resume(exp_dir.string(), *earlier);
  throw UserError(fmt::format(
      "{} holds a run with another config, and these fields may not change under a run:{}\n"
      "Give them their earlier values, choose another exp_dir for a new run, or insist with "
      "++key=value. {}{}",
      exp_dir.string(), refused,
      is_of_data ? "To train on with other data, write checkpoint.data_may_change=true. " : "",
      way_back));
}

void write_config(const fs::path& exp_dir, const UserConfig& user, const config::Node& resolved) {
  const fs::path path = exp_dir / kConfigFile;
  const std::string first_lines = header(exp_dir, resolved);
  try {
    if (fs::exists(path)) {
      const std::string there = read_text(path);
      if (there.starts_with(first_lines) && makes(there, user, resolved, exp_dir)) return;
    }
    replace_file(path, first_lines + print_kept(user, resolved, exp_dir));
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}; or choose another exp_dir", error.what()));
  }
}

}  // namespace phalanx
