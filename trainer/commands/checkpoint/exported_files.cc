// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/checkpoint/exported_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/commands/checkpoint/tokenizer_end.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/hugging_face/generation_file.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEnd = "eos_token_id";

Attachment* find(Attachments& files, const std::string& name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const Attachment& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::optional<int64_t> end_of_tokenizer(const Checkpoint& checkpoint) {
  try {
    return load_tokenizer("the tokenizer", checkpoint.path / kAttachmentsFolder)
        .tokenizer->end_of_text();
  } catch (const UserError&) {
    return std::nullopt;  // There is none, or one that cannot be used here.
  }
}

// The end of text of a checkpoint without generation_config.json, as earlier versions wrote them:
// by the field of the tasks here, or by the tokenizer.
std::optional<int64_t> end_of_older(const Checkpoint& checkpoint, const config::Node& run) {
  const config::Node* value = run.find_path("task.data.end_of_text");
  if (value != nullptr && value->is_scalar()) return config::parse_integer(value->text).value;
  return end_of_tokenizer(checkpoint);
}

// A number of config.json stays one, which may be all that the model's class takes.
Json for_config(const config::Node* present, const Json& tokens) {
  if (present == nullptr || !present->is_scalar() || !tokens.is_array() || tokens.empty()) {
    return tokens;
  }
  const auto number = config::parse_integer(present->text).value;
  const bool is_one = number && std::find(tokens.begin(), tokens.end(), *number) != tokens.end();
  return is_one ? Json(*number) : tokens.front();
}

}  // namespace

Attachments exported_files(const Checkpoint& checkpoint, const config::Node& run,
                           const std::string& model_type) {
  Attachments files = read_attachments(checkpoint);
  if (find(files, kGenerationFile) == nullptr) {
    if (const auto end = end_of_older(checkpoint, run)) {
      files.push_back(
          {.name = kGenerationFile, .content = with_end_token("{}", *end, kGenerationFile)});
    }
  }
  std::vector<int64_t> ends;
  if (const Attachment* file = find(files, kGenerationFile)) {
    ends = end_tokens(file->content, kGenerationFile);
  }
  name_end_in_tokenizer(ends, files);
  name_class_of_tokenizer(model_type, files);
  require_attachable(files);
  return files;
}

void agree_on_tokens(config::Node& config, Attachments& files) {
  Attachment* file = find(files, kGenerationFile);
  if (file == nullptr) return;
  Json generation = Json::parse(file->content);
  const std::size_t before = generation.size();
  for (const char* key : {"bos_token_id", "decoder_start_token_id", "pad_token_id"}) {
    const config::Node* ours = config.find(key);
    const bool is_known = generation.contains(key) && !generation[key].is_null();
    if (ours != nullptr && !ours->is_null() && !is_known) {
      generation[key] = Json::parse(config::to_json(*ours));
    } else if (is_known && (ours == nullptr || ours->is_null())) {
      config.set(key, config::parse_json(generation[key].dump(), kGenerationFile));
    }
  }
  if (generation.contains(kEnd) && !generation[kEnd].is_null()) {
    const Json end = for_config(config.find(kEnd), generation[kEnd]);
    config.set(kEnd, config::parse_json(end.dump(), kGenerationFile));
  }
  if (generation.size() != before) file->content = generation.dump(2) + "\n";
}

}  // namespace phalanx
