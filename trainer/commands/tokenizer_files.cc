// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/tokenizer_files.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/attachments.h"
#include "trainer/checkpoint/manifest_rules.h"
#include "trainer/cli/terminal.h"
#include "trainer/io/file.h"
#include "trainer/tokenizers/load_tokenizer.h"

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

void warn_of_tokenizer(const fs::path& folder, std::optional<int64_t> vocabulary_size) {
  try {
    const int64_t tokens = load_tokenizer("the tokenizer", folder).tokenizer->vocabulary_size();
    if (!vocabulary_size || tokens <= *vocabulary_size) return;
    print_warning(
        fmt::format("the tokenizer in '{}' has {} tokens, but the model knows {}: a run with both "
                    "is refused; name another one in task.data.tokenizer",
                    folder.string(), tokens, *vocabulary_size));
  } catch (const UserError& error) {
    print_warning(fmt::format("the tokenizer's files are carried, but cannot be used here: {}",
                              error.what()));
  }
}

}  // namespace phalanx
