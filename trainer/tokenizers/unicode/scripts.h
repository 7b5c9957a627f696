// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::unicode {

/// A number for the script of a character, as SentencePiece and the pre-tokenizer UnicodeScripts
/// have it: Hiragana and Katakana count as Han; 0 stands for a space and for no known script.
int script_of(char32_t code);

}  // namespace phalanx::unicode
