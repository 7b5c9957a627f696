// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/generate_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/commands/use/override_keys.h"
#include "trainer/commands/use/unread_fields.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/help.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// The fields of both structs, at one level.
config::Declaration make_declaration() {
  config::Declaration declaration;
  for (const config::Declaration* part :
       {&config::declaration<GenerationConfig>(), &config::declaration<GenerateCommandConfig>()}) {
    for (config::Field field : part->fields()) {
      field.resume_may_change = false;  // There is no run.
      declaration.add_field(std::move(field));
    }
    for (const auto& check : part->checks()) declaration.add_check(check);
    for (const auto& rule : part->ineffective()) declaration.add_ineffective(rule);
  }
  return declaration;
}

const config::Declaration& declaration() {
  static const config::Declaration made = make_declaration();
  return made;
}

// Takes a field over where theirs has a number, or a list of numbers, in it.
void take(const config::Node& theirs, const char* key, config::Node& ours) {
  const config::Node* value = theirs.find(key);
  if (value == nullptr || value->is_null()) return;
  if (value->is_scalar() && std::string_view(key) == "eos_token_id") {
    ours.set(key, config::Node::list({*value}));
  } else {
    ours.set(key, *value);
  }
}

bool is_true(const config::Node& theirs, const char* key) {
  const config::Node* value = theirs.find(key);
  return value != nullptr && value->is_scalar() && value->text == "true";
}

// What such a folder says of generation: transformers' own settings. Its draws have a temperature
// of 1 and the 50 likeliest tokens where it does not say.
config::Node settings_of_folder(const fs::path& folder) {
  config::Node ours = config::Node::map();
  take(read_hugging_face_config(folder), "eos_token_id", ours);
  const fs::path path = folder / "generation_config.json";
  std::error_code error;
  if (!fs::exists(path, error)) return ours;
  const config::Node theirs =
      config::parse_json(read_text(path, config::kMaxConfigBytes), path.string());
  for (const char* key : {"eos_token_id", "max_new_tokens", "repetition_penalty"}) {
    take(theirs, key, ours);
  }
  const config::Node* beams = theirs.find("num_beams");
  if (is_true(theirs, "do_sample")) {
    ours.set("temperature", config::Node::real(1));
    ours.set("top_k", config::Node::integer(50));
    for (const char* key : {"temperature", "top_k", "top_p"}) take(theirs, key, ours);
    // Theirs for all tokens.
    if (ours.find("top_k")->text == "0") ours.set("top_k", config::Node::null());
  } else if (beams != nullptr && beams->is_scalar() && beams->text != "1") {
    for (const char* key : {"num_beams", "length_penalty"}) take(theirs, key, ours);
    if (is_true(theirs, "early_stopping")) ours.set("early_stopping", config::Node::boolean(true));
  }
  return ours;
}

// A prompt is text, and stands behind its flag.
void refuse_prompt(const std::string& override) {
  const std::string key = override.substr(0, override.find('='));
  const bool has_blank =
      std::any_of(key.begin(), key.end(), [](unsigned char c) { return std::isspace(c) != 0; });
  const bool lacks_value = key.size() == override.size() && !override.starts_with('~');
  if (!has_blank && (!lacks_value || is_field_of_generate(key))) return;
  throw UserError(fmt::format("'{0}' is no key=value: for a prompt write {1}", override,
                              "--prompt=" + config::shell_word(override)));
}

// What other programs call some of the fields.
constexpr std::array<std::pair<std::string_view, const char*>, 7> kOthersNames{{
    {"max_length", "max_new_tokens"},
    {"max_tokens", "max_new_tokens"},
    {"do_sample", "temperature"},
    {"stop_strings", "stop"},
    {"stop_sequences", "stop"},
    {"eos_token", "eos_token_id"},
    {"beam_size", "num_beams"},
}};

std::vector<std::string> sorted_fields() {
  std::vector<std::string> names = declaration().field_names();
  std::ranges::sort(names);
  return names;
}

std::string unknown_field(const std::string& key) {
  const std::vector<std::string> fields = sorted_fields();
  std::optional<std::string> meant = nearest(key, fields);
  for (const auto& [theirs, ours] : kOthersNames) {
    if (key == theirs) meant = ours;
  }
  return fmt::format("'{}' is no field of generate{}; they are: {}", key,
                     meant ? fmt::format("; did you mean {}?", *meant) : "",
                     fmt::join(fields, ", "));
}

// A key that neither generate nor the run's config has is most likely meant for generate.
void refuse_unknown(const TrainedModel& trained, const std::vector<std::string>& of_config) {
  if (of_config.empty()) return;
  const config::Declaration& of_run = trained.config({}).entry->declaration();
  for (const std::string& override : of_config) {
    const std::string key = first_key(override);
    if (of_run.find(key) != nullptr || of_run.find_deprecated(key) != nullptr) continue;
    throw UserError(unknown_field(key) + ". The run's own config has " +
                    fmt::format("{}", fmt::join(of_run.field_names(), ", ")));
  }
}

void take_file(const fs::path& file, config::Node& tree, config::Diagnostics& mistakes) {
  const config::Node given = config::read_file(file, mistakes);
  for (const auto& [key, origin, value] : given.entries) {
    if (is_field_of_generate(key)) {
      tree.set(key, value);
    } else {
      mistakes.add(origin, key, unknown_field(key));
    }
  }
}

}  // namespace

void GenerateCommandConfig::describe(config::Schema<GenerateCommandConfig>& s) {
  s.field("batch_size", &GenerateCommandConfig::batch_size, "prompts that are written at a time")
      .at_least(1);
  s.field("dtype", &GenerateCommandConfig::dtype,
          "in what the model computes; as_loaded: in that of the run")
      .choices({{"as_loaded", ComputeDtype::as_loaded},
                {"bfloat16", ComputeDtype::bfloat16},
                {"float16", ComputeDtype::float16}});
  s.field("special_tokens", &GenerateCommandConfig::special_tokens,
          "whether the text of a special token (<|user|>, say) in a prompt is that token; null: as "
          "the run reads its inputs, and for a Hugging Face folder it is text like any other");
}

bool is_field_of_generate(const std::string& key) { return declaration().find(key) != nullptr; }

GenerateSettings generate_settings(const TrainedModel& trained, Arguments overrides,
                                   const std::optional<fs::path>& file) {
  GenerateSettings settings;
  config::Node tree =
      trained.is_hugging_face() ? settings_of_folder(trained.path()) : config::Node::map();
  config::Diagnostics mistakes;
  if (file) take_file(*file, tree, mistakes);
  for (const std::string& override : overrides) {
    refuse_prompt(override);
    if (is_field_of_generate(first_key(override))) {
      config::apply_override(tree, override, mistakes);
    } else {
      settings.of_config.push_back(override);
    }
  }
  refuse_unknown(trained, settings.of_config);
  if (trained.is_hugging_face()) refuse_unread_fields(trained.path(), settings.of_config);
  config::Node resolved = config::resolve(declaration(), std::move(tree), mistakes);
  mistakes.throw_if_any();
  for (const auto& warning : mistakes.warnings()) {
    print_warning(config::to_string(warning, message_width()));
  }
  settings.generation = config::read<GenerationConfig>(resolved);
  settings.command = config::read<GenerateCommandConfig>(resolved);
  resolved.set("batch_size", config::Node::null());
  settings.of_texts = config::to_json(resolved);
  return settings;
}

std::string generate_fields(const TextStyle& style) {
  return style.heading("fields beside those of the config:") + "\n" +
         config::help(config::field_entries(declaration()),
                      {.width = style.width, .colour = style.colour});
}

}  // namespace phalanx
