// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace phalanx {

/// Whether a pattern that cuts texts into words is one of those that are known to end a word at
/// every place of `cut_behind_letter`, and to begin the next one there as at the beginning of a
/// text: the patterns of GPT-2, of GPT-4 and Llama 3, of Qwen 2, and of GPT-4o.
bool cuts_behind_letters(std::string_view pattern);

/// The greatest place in text[0, end) between a letter and a space or line end, or, where
/// `at_marks`, a comma or full stop of Chinese; 0 if there is none. The letters are those of ASCII,
/// and most of Cyrillic, Japanese, Chinese and Korean.
std::size_t cut_behind_letter(std::string_view text, std::size_t end, bool at_marks);

}  // namespace phalanx
