// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/text_in_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/use/override_keys.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/tokenizers/load_tokenizer.h"
#include "trainer/tokenizers/sentinel_tokens.h"
#include "trainer/tokenizers/special_reading.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Whether the command line changes a section that only training has: nothing has checked it yet.
bool changes_training(const ConfigInUse& config) {
  return std::ranges::any_of(config.overrides, [&](const std::string& override) {
    return config.resolved.find(first_key(override)) == nullptr;
  });
}

TaskText text_of_folder(const fs::path& folder, const std::string& field) {
  LoadedTokenizer loaded = load_tokenizer(field, folder);
  std::optional<int64_t> end;
  if (const auto token = loaded.tokenizer->end_of_text()) end = *token;
  return {.tokenizer = std::move(loaded.tokenizer), .end_of_text = end};
}

config::Node* find_path(config::Node& tree, const std::string& path) {
  config::Node* node = &tree;
  for (const std::string& key : config::split_path(path)) {
    if (node != nullptr) node = node->find(key);
  }
  return node;
}

// Whether the config's task names a tokenizer, which then is this one.
bool replace_tokenizer(config::Node& resolved, const fs::path& tokenizer) {
  for (const char* field : {"task.data.tokenizer", "task.data.source.tokenizer"}) {
    config::Node* value = find_path(resolved, field);
    if (value == nullptr || !value->is_scalar()) continue;
    *value = config::Node::string(tokenizer.string());
    return true;
  }
  return false;
}

// The run's config, with pairs whose texts have special tokens where the command asks for them: a
// task of pairs that are read without them knows no sentinels of T5 either.
config::Node resolved_for_texts(const TrainedModel& trained, const ConfigInUse& config,
                                const AskedText& asked) {
  config::Node resolved = trained.resolved(config.user);
  config::Node* of_pairs = find_path(resolved, "task.data.pairs.special_tokens");
  if (asked.special_tokens == true && of_pairs != nullptr) *of_pairs = config::Node::boolean(true);
  return resolved;
}

// As the run's task does it, by another tokenizer than its config names; nothing where that makes
// no task.
std::optional<TaskText> text_of_task(const TrainedModel& trained, const ConfigInUse& config,
                                     const AskedText& asked, const fs::path& tokenizer) {
  try {
    config::Node resolved = resolved_for_texts(trained, config, asked);
    if (!replace_tokenizer(resolved, tokenizer)) return std::nullopt;
    return make_chosen<AnyTask>(resolved)->text();
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// By the task if it can be made. By the tokenizer's files alone the end may be another one than
// what the run has learned, which the checkpoint says.
TaskText text_by_tokenizer(const TrainedModel& trained, const ConfigInUse& config,
                           const AskedText& asked, const fs::path& tokenizer,
                           const std::string& field) {
  TaskText by_itself = text_of_folder(tokenizer, field);
  if (trained.is_hugging_face()) return by_itself;
  if (const auto text = text_of_task(trained, config, asked, tokenizer)) return *text;
  if (!trained.ends_of_text().empty()) by_itself.end_of_text.reset();
  return by_itself;
}

// What the run's task reads and writes with. Its files may have moved: then a checkpoint's own,
// which are the same. What the command line says of the task is right, or a mistake to be told.
TaskText text_of_run(const TrainedModel& trained, const ConfigInUse& config,
                     const AskedText& asked) {
  try {
    const config::Node resolved = resolved_for_texts(trained, config, asked);
    return make_chosen<AnyTask>(resolved)->text();
  } catch (const UserError& error) {
    if (changes_training(config)) throw;
    if (const auto own = trained.tokenizer_folder()) {
      return text_by_tokenizer(trained, config, asked, *own, "the checkpoint's tokenizer");
    }
    print_warning(
        fmt::format("texts are numbers of tokens here, unless --tokenizer names a tokenizer: {}",
                    error.what()));
    return {};
  }
}

// A folder of T5 may have its tokenizer as spiece.model alone, without the 100 sentinels that
// Hugging Face's libraries number behind its tokens.
TaskText with_t5_sentinels(TaskText text, const fs::path& folder, const config::Node& resolved) {
  const config::Node* model = resolved.find_path("model.name");
  const config::Node* size = resolved.find_path("model.vocab_size");
  std::error_code unknown;
  const bool is_t5 = model != nullptr && model->text == "t5" && size != nullptr &&
                     fs::exists(folder / "spiece.model", unknown);
  if (!is_t5 || !text.tokenizer) return text;
  const int64_t first = first_sentinel_behind(*text.tokenizer);
  if (first < config::parse_integer(size->text).value.value_or(0)) {
    text.tokenizer = with_sentinels(std::move(text.tokenizer), first, kT5Sentinels);
  }
  return text;
}

TaskText find_text(const TrainedModel& trained, const ConfigInUse& config, const AskedText& asked) {
  if (asked.tokenizer) {
    return text_by_tokenizer(trained, config, asked, *asked.tokenizer, "--tokenizer");
  }
  if (!trained.is_hugging_face()) return text_of_run(trained, config, asked);
  const auto folder = trained.tokenizer_folder();
  return folder ? with_t5_sentinels(text_of_folder(*folder, "FOLDER"), *folder, config.resolved)
                : TaskText();
}

// Those of the checkpoint, unless the task ends its texts with another one.
std::vector<int64_t> ends_of(const TaskText& text, std::vector<int64_t> recorded) {
  if (!text.end_of_text) return recorded;
  const auto place = std::find(recorded.begin(), recorded.end(), *text.end_of_text);
  if (place == recorded.end()) return {*text.end_of_text};
  std::rotate(recorded.begin(), place, place + 1);
  return recorded;
}

}  // namespace

TextInUse text_in_use(const TrainedModel& trained, const ConfigInUse& config,
                      const AskedText& asked) {
  TaskText text = find_text(trained, config, asked);
  std::vector<int64_t> ends = ends_of(text, trained.ends_of_text());
  if (text.tokenizer && asked.special_tokens) {
    text.tokenizer = *asked.special_tokens ? reading_special_tokens(text.tokenizer)
                                           : reading_as_told(text.tokenizer);
  }
  return {.tokenizer = std::move(text.tokenizer), .ends = std::move(ends)};
}

}  // namespace phalanx
