// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/default_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/model_base.h"
#include "trainer/config/syntax/print.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

// Longer documents are cut: the memory for a sequence grows with its length.
constexpr int64_t kLongestSequence = 1024;

bool names_task(const std::string& override) {
  std::string field = override.substr(0, override.find('='));
  field.erase(0, std::min(field.find_first_not_of('+'), field.size()));
  return field == "task" || field == "task.name";
}

std::string with_text(const std::string& field, const std::string& text) {
  return field + "=" + config::print_inline(config::Node::string(text));
}

}  // namespace

std::vector<std::string> default_task(const TrainedModel& trained, Arguments overrides,
                                      const std::vector<std::filesystem::path>& files) {
  const bool has_task = std::any_of(overrides.begin(), overrides.end(), names_task);
  if (!trained.is_hugging_face() || has_task || files.empty()) return {};
  const auto tokenizer = trained.tokenizer_folder();
  if (!tokenizer) return {};
  const config::Node resolved = trained.resolved_for_use(trained.config(overrides));
  const ModelWithoutValues sizes = model_without_values(*chosen_section<ModelBase>(resolved));
  const auto* causal = sizes.model->as<CausalLanguageModel>();
  if (causal == nullptr) return {};
  const int64_t length = std::min(causal->context_length(), kLongestSequence);
  config::Node paths = config::Node::list();
  for (const auto& file : files) paths.items.push_back(config::Node::string(file.string()));
  return {"task.name=language_modeling",
          "task.sample.tokens=0",
          "task.data.source.name=text",
          "task.data.source.files=" + config::print_inline(paths),
          with_text("task.data.source.tokenizer", tokenizer->string()),
          "task.data.documents=padded",
          fmt::format("task.data.sequence_length={}", length)};
}

}  // namespace phalanx
