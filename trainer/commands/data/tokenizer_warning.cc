// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/data/tokenizer_warning.h"

#include <fmt/format.h>

#include "trainer/base/user_error.h"
#include "trainer/cli/terminal.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {

void warn_of_tokenizer(const std::filesystem::path& folder,
                       std::optional<int64_t> vocabulary_size) {
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
