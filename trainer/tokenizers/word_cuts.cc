// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/word_cuts.h"

#include <algorithm>
#include <array>

#include "trainer/base/utf8.h"

namespace phalanx {
namespace {

// In none of these can a match hold a letter and, right behind it, what cut_behind_letter looks
// for; none looks back; and looking ahead decides only where white space ends.
constexpr std::array<std::string_view, 5> kCutBehindLetters{
    // GPT-2; tiktoken writes it otherwise.
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    // GPT-4 and Llama 3.
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // Qwen 2.
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // GPT-4o.
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)",
};

constexpr std::array<std::string_view, 3> kMarks{"\u3001", "\u3002", "\uff0c"};

// Characters in a row that are all letters, as UTF-8, which sorts as Unicode does.
struct Letters {
  std::string_view first;
  std::string_view last;
};
constexpr std::array<Letters, 7> kLetters{{{"A", "Z"},
                                           {"a", "z"},
                                           {"\u0410", "\u044f"},    // Cyrillic
                                           {"\u3041", "\u3096"},    // Hiragana
                                           {"\u30a1", "\u30fa"},    // Katakana
                                           {"\u5000", "\u9fef"},    // Han
                                           {"\uac00", "\ud7a3"}}};  // Hangul

// The last character of a text, perhaps only a part of one.
std::string_view last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && continues_character(text[begin])) --begin;
  return text.substr(begin);
}

bool is_letter(std::string_view character) {
  return character_length(character) == character.size() &&
         std::any_of(kLetters.begin(), kLetters.end(), [&](const Letters& letters) {
           return letters.first.size() == character.size() && letters.first <= character &&
                  character <= letters.last;
         });
}

bool is_mark(std::string_view text) {
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](std::string_view mark) { return text.starts_with(mark); });
}

}  // namespace

bool cuts_behind_letters(std::string_view pattern) {
  return std::find(kCutBehindLetters.begin(), kCutBehindLetters.end(), pattern) !=
         kCutBehindLetters.end();
}

std::size_t cut_behind_letter(std::string_view text, std::size_t end, bool at_marks) {
  for (std::size_t place = std::min(end, text.size()); place-- > 1;) {
    const bool is_space = text[place] == ' ' || text[place] == '\n';
    if (!is_space && !(at_marks && is_mark(text.substr(place)))) continue;
    if (is_letter(last_character(text.substr(0, place)))) return place;
  }
  return 0;
}

}  // namespace phalanx
