// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/added_vocabulary.h"

#include <algorithm>
#include <utility>

#include "trainer/tokenizers/unicode/categories.h"
#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx {
namespace {

using unicode::Character;

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  const std::size_t length = unicode::last_character_length(text);
  return unicode::is_word(unicode::character_at(text, text.size() - length).code);
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && unicode::is_word(unicode::character_at(text, 0).code);
}

// Where the white space at the end of text[0, end) begins.
std::size_t begin_of_space_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t length = unicode::last_character_length(text.substr(0, end));
    if (!unicode::is_white_space(unicode::character_at(text, end - length).code)) break;
    end -= length;
  }
  return end;
}

std::size_t end_of_space_behind(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Character character = unicode::character_at(text, begin);
    if (!unicode::is_white_space(character.code)) break;
    begin += character.length;
  }
  return begin;
}

std::vector<ByteTrie::Entry> patterns_of(const std::vector<AddedEntry>& entries) {
  std::vector<ByteTrie::Entry> patterns;
  for (const AddedEntry& entry : entries) {
    patterns.emplace_back(entry.pattern, static_cast<int32_t>(&entry - entries.data()));
  }
  return patterns;
}

}  // namespace

AddedVocabulary::AddedVocabulary(std::vector<AddedEntry> entries)
    : entries_(std::move(entries)), patterns_(patterns_of(entries_)) {
  for (const AddedEntry& entry : entries_) longest_ = std::max(longest_, entry.pattern.size());
}

bool AddedVocabulary::touches(std::string_view text, std::size_t place) const {
  bool is_touched = false;
  for (std::size_t begin = place - std::min(place, longest_); begin <= place && !is_touched;
       ++begin) {
    patterns_.find_prefixes(text.substr(begin), [&](std::size_t length, int32_t) {
      is_touched = is_touched || begin + length >= place;
    });
  }
  return is_touched;
}

// The first match from `begin` on; gives its place.
const AddedEntry* AddedVocabulary::find(std::string_view text, std::size_t& begin,
                                        std::size_t& end) const {
  for (; begin < text.size(); ++begin) {
    if (!patterns_.has_root(static_cast<unsigned char>(text[begin]))) continue;
    const AddedEntry* found = nullptr;
    patterns_.find_prefixes(text.substr(begin), [&](std::size_t length, int32_t number) {
      found = &entries_[number];
      end = begin + length;
    });
    if (found != nullptr) return found;
  }
  return nullptr;
}

void AddedVocabulary::split(std::string_view text, SpecialText special, Take take) const {
  std::size_t done = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  const auto take_text_to = [&](std::size_t place) {
    if (done < place) take(done, place, nullptr);
  };
  for (const AddedEntry* added = nullptr;
       !entries_.empty() && (added = find(text, begin, end)) != nullptr; begin = end) {
    if (added->is_special && special == SpecialText::ordinary) continue;
    if (added->single_word &&
        (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    std::size_t from = begin;
    std::size_t to = end;
    if (added->strips_left) from = std::max(begin_of_space_before(text, begin), done);
    if (added->strips_right) to = end_of_space_behind(text, end);
    take_text_to(from);
    take(from, to, added);
    done = to;
  }
  take_text_to(text.size());
}

}  // namespace phalanx
