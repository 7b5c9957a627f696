// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// All characters of text files, each once, in the order of Unicode: the tokens of a tokenizer of
/// characters. `field` is that of JSONL files. What is no UTF-8 counts as U+FFFD. Throws as
/// `tokenize`, and UserError where there are none.
std::string learn_characters(const std::vector<std::filesystem::path>& files,
                             const std::string& field);

}  // namespace phalanx
