// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/folder_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/node.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/hugging_face/generation_file.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// A tokenizer's files as save_pretrained names them, and as published models name theirs.
constexpr std::array kTokenizer{
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "encoder.json",
    "vocab.bpe",
    "tokenizer.model",
    "spiece.model",
    "characters.txt",
};
// The second one is that of processors.
constexpr std::array kChatTemplates{"chat_template.jinja", "chat_template.json"};
// The keys that transformers reads from config.json if there is no generation_config.json.
constexpr std::array kTokens{"bos_token_id", "decoder_start_token_id", "eos_token_id",
                             "pad_token_id"};

void add_files(const fs::path& folder, std::span<const char* const> names, Attachments& files) {
  for (const char* name : names) {
    std::error_code unknown;  // Reading it says more.
    if (!fs::exists(fs::symlink_status(folder / name, unknown))) continue;
    files.push_back({.name = name, .content = read_text(folder / name, kLargestAttachment)});
  }
}

// Nothing where config.json names no token that ends a text.
std::optional<Attachment> made_of_config(const fs::path& folder) {
  const config::Node config = read_hugging_face_config(folder);
  nlohmann::ordered_json made;
  for (const char* key : kTokens) {
    const config::Node* value = config.find(key);
    if (value != nullptr && !value->is_null()) {
      made[key] = nlohmann::ordered_json::parse(config::to_json(*value));
    }
  }
  if (!made.contains("eos_token_id")) return std::nullopt;
  return Attachment{.name = kGenerationFile, .content = made.dump(2) + "\n"};
}

void add_generation_file(const fs::path& folder, Attachments& files) {
  const std::size_t before = files.size();
  add_files(folder, std::array{kGenerationFile}, files);
  if (files.size() > before) {
    // Before a training, not after it.
    end_tokens(files.back().content, (folder / kGenerationFile).string());
  } else if (auto made = made_of_config(folder)) {
    files.push_back(std::move(*made));
  }
}

template <std::size_t N>
bool holds(const std::array<const char*, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Attachments tokenizer_files(const fs::path& folder) {
  Attachments files;
  add_files(folder, kTokenizer, files);
  require_attachable(files);
  return files;
}

Attachments model_files(const fs::path& folder) {
  Attachments files = tokenizer_files(folder);
  add_files(folder, kChatTemplates, files);
  add_generation_file(folder, files);
  require_attachable(files);
  return files;
}

bool is_tokenizer_file(std::string_view name) {
  return holds(kTokenizer, name) || holds(kChatTemplates, name);
}

}  // namespace phalanx
