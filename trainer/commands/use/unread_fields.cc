// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/unread_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/commands/use/override_keys.h"

namespace phalanx {
namespace {

// Sections that only a training, a validation, `predict` or a run's folder reads.
constexpr std::array<std::string_view, 9> kUnread{"task",         "optimizer",  "optimizers",
                                                  "lr_scheduler", "validation", "predict",
                                                  "logging",      "about",      "exp_name"};
// What a model that is used reads in the section training.
constexpr std::array<std::string_view, 5> kReadOfTraining{
    "training", "training.seed", "training.deterministic", "training.deterministic_warn_only",
    "training.float32_matmul_precision"};

bool is_unread(const std::string& key) {
  const auto holds = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (first_key(key) == "training") return !holds(kReadOfTraining, key);
  return holds(kUnread, first_key(key));
}

// What generate has in the place of a task's field, for messages.
std::string in_its_place(const std::string& key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPlaces{{
      {"task.data.pairs.special_tokens", "special_tokens=true"},
      {"task.data.tokenizer", "--tokenizer"},
      {"task.data.source.tokenizer", "--tokenizer"},
      {"task.data.end_of_text", "eos_token_id"},
  }};
  for (const auto& [field, place] : kPlaces) {
    if (key == field) return fmt::format(": take {}", place);
  }
  constexpr std::string_view kGeneration = "task.generation.";
  if (key.starts_with(kGeneration)) return fmt::format(": take {}", key.substr(kGeneration.size()));
  return "";
}

}  // namespace

void refuse_unread_fields(const std::filesystem::path& folder, Arguments overrides) {
  for (const std::string& override : overrides) {
    const std::string key = key_of(override);
    if (!is_unread(key)) continue;
    throw UserError(
        fmt::format("{}: generate does not read it of the Hugging Face folder '{}', which has no "
                    "run{}",
                    key, folder.string(), in_its_place(key)));
  }
}

}  // namespace phalanx
