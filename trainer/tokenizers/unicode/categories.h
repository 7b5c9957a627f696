// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::unicode {

/// Unicode's White_Space.
bool is_white_space(char32_t code);

/// A number of any kind: N.
bool is_numeric(char32_t code);

/// What `\w` matches in Rust's regular expressions: letters, marks, digits, connectors, joiners.
bool is_word(char32_t code);

/// Punctuation as BERT's tokenizers know it: ASCII's, symbols included, and P.
bool is_punctuation(char32_t code);

/// A character of control, format or private use, as BERT's normalizer knows it.
bool is_other(char32_t code);

/// A mark of any kind: M, as the normalizer StripAccents knows it.
bool is_mark(char32_t code);

/// A mark that takes no place of its own: Mn, as BERT's normalizer knows it.
bool is_nonspacing_mark(char32_t code);

/// Appends a character in lower case, without regard to its neighbours.
void append_lowercase(char32_t code, std::string& text);

}  // namespace phalanx::unicode
