// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/unicode/categories.h"

#include <utf8proc.h>

#include "trainer/tokenizers/unicode/characters.h"
#include "trainer/tokenizers/unicode/older_tables.h"

namespace phalanx::unicode {
namespace {

utf8proc_category_t category_of(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Whether the crates of the package tokenizers have a character in a set, by their own tables.
bool is_in_set(bool is_ours, const OlderSet& set, char32_t code) {
  return is_in(is_ours ? set.only_here : set.only_there, code) ? !is_ours : is_ours;
}

constexpr bool is_ascii_punctuation(char32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
         (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
}

// Alphabetic symbols: letters in circles and squares.
constexpr Range kLetterSymbols[] = {
    {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

}  // namespace

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_numeric(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const auto category = category_of(code);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t code) {
  if (code < 0x80) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
           (code >= '0' && code <= '9') || code == '_';
  }
  const auto category = category_of(code);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || code == 0x200C || code == 0x200D ||
         is_in(kLetterSymbols, code);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) return is_ascii_punctuation(code);
  const auto category = category_of(code);
  return is_in_set(category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO,
                   older_punctuation(), code);
}

bool is_other(char32_t code) {
  if (code < 0x80) return code < ' ' || code == 0x7F;
  const auto category = category_of(code);
  return is_in_set(category >= UTF8PROC_CATEGORY_CC && category <= UTF8PROC_CATEGORY_CO,
                   older_other(), code);
}

bool is_mark(char32_t code) {
  if (code < 0x300) return false;
  const auto category = category_of(code);
  return is_in_set(category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME,
                   older_marks(), code);
}

bool is_nonspacing_mark(char32_t code) {
  if (code < 0x300) return false;
  return is_in_set(category_of(code) == UTF8PROC_CATEGORY_MN, older_nonspacing_marks(), code);
}

void append_lowercase(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code);
  } else if (code == 0x130) {  // The only one that becomes two.
    text += "i\u0307";
  } else {
    append_character(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))),
                     text);
  }
}

}  // namespace phalanx::unicode
