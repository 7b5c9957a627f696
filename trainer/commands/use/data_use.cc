// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/data_use.h"

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/commands/use/folder_task.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

using Change = std::function<void(config::Node&)>;

// All values of fields `tokenizer` in a task, wherever they are.
void for_each_tokenizer(config::Node& node, const Change& change) {
  for (config::Entry& entry : node.entries) {
    if (entry.key == "tokenizer" && entry.value.is_scalar()) {
      change(entry.value);
    } else {
      for_each_tokenizer(entry.value, change);
    }
  }
  for (config::Node& item : node.items) for_each_tokenizer(item, change);
}

void replace_tokenizers(const std::string& tokenizer, config::Node& task) {
  bool is_read = false;
  for_each_tokenizer(task, [&](config::Node& value) {
    value = config::Node::string(tokenizer);
    is_read = true;
  });
  if (is_read) return;
  throw UserError(
      fmt::format("--tokenizer={}: the task of this model reads its data without a tokenizer (no "
                  "field tokenizer is set): leave it out",
                  tokenizer));
}

// Whether it is a path of the run's config where nothing is now.
bool has_moved(const config::Node& tokenizer) {
  const config::Origin& origin = tokenizer.origin;
  if (origin.source && origin.source->kind == config::Source::Kind::command_line) return false;
  std::error_code unknown;
  return tokenizer.text != "bytes" && !std::filesystem::exists(tokenizer.text, unknown);
}

void take_carried(const TrainedModel& trained, config::Node& task) {
  for_each_tokenizer(task, [&](config::Node& value) {
    if (!has_moved(value)) return;
    const auto own = trained.tokenizer_folder();
    if (!own) return;
    fmt::print(stderr, "note: the tokenizer '{}' of the run's config is not there: '{}' is taken\n",
               value.text, own->string());
    value = config::Node::string(own->string());
  });
}

}  // namespace

UserConfig config_for(const DataUse& use, const TrainedModel& trained) {
  UserConfig user = trained.config(use.overrides, use.layer);
  if (!trained.names_task()) complete_folder_task(trained, use, user);
  config::Node* task = user.tree.find("task");
  if (task == nullptr) return user;  // Resolving says that it is missing.
  if (use.tokenizer) {
    replace_tokenizers(*use.tokenizer, *task);
  } else if (!trained.is_hugging_face()) {
    take_carried(trained, *task);
  }
  return user;
}

}  // namespace phalanx
