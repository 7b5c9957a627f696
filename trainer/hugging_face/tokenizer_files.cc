// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/tokenizer_files.h"

#include <array>
#include <system_error>

#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// What save_pretrained writes of a tokenizer, and what the models of others come with.
constexpr std::array kNames{
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

}  // namespace

Attachments tokenizer_files(const fs::path& folder) {
  Attachments files;
  for (const char* name : kNames) {
    std::error_code unknown;  // Reading it says more.
    if (!fs::exists(fs::symlink_status(folder / name, unknown))) continue;
    files.push_back({.name = name, .content = read_text(folder / name, kLargestAttachment)});
  }
  require_attachable(files);
  return files;
}

}  // namespace phalanx
