// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/commands/use/trained_model.h"
#include "trainer/config/tree/forward.h"
#include "trainer/generation/generation_config.h"

namespace phalanx {

/// In what the model computes.
enum class ComputeDtype { as_loaded, bfloat16, float16 };

/// What the command has beside the search for tokens.
struct GenerateCommandConfig {
  int64_t batch_size = 8;
  ComputeDtype dtype = ComputeDtype::as_loaded;
  std::optional<bool> special_tokens;

  static void describe(config::Schema<GenerateCommandConfig>& s);
};

/// The fields of `trainer generate`, and the overrides of the run's config.
struct GenerateSettings {
  GenerationConfig generation;
  GenerateCommandConfig command;
  std::vector<std::string> of_config;  ///< Overrides of the run's config.
  std::string of_texts;                ///< The fields on which texts depend, as JSON.
};

/// Whether a field is one of `trainer generate`, and not of a config.
bool is_field_of_generate(const std::string& key);

/// Sorts `key=value ...` into both. The fields begin with the values of a Hugging Face folder's
/// generation_config.json, then those of `file`, a map of fields. Throws UserError, also for a text
/// that is meant as a prompt, and for a field that neither has.
GenerateSettings generate_settings(const TrainedModel& trained, Arguments overrides,
                                   const std::optional<std::filesystem::path>& file);

/// The fields, for help.
std::string generate_fields(const TextStyle& style);

}  // namespace phalanx
