// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/character_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"

namespace phalanx {
namespace {

// Calls `function` with each character of a well-formed text.
template <class Function>
void for_each_character(std::string_view text, const Function& function) {
  while (!text.empty()) {
    const size_t length = character_length(text);
    function(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace

CharacterTokenizer::CharacterTokenizer(std::string_view text) {
  if (text.empty()) throw UserError("it has no characters");
  if (well_formed_length(text) != text.size()) throw UserError("it is no UTF-8");
  std::set<std::string_view> found;  // UTF-8 sorts as Unicode does.
  for_each_character(text, [&](std::string_view character) { found.insert(character); });
  characters_.assign(found.begin(), found.end());
  for (const std::string& character : characters_) {
    tokens_.emplace(character, static_cast<int32_t>(tokens_.size()));
  }
}

void CharacterTokenizer::encode(std::string_view text, SpecialText special,
                                std::vector<int32_t>& tokens) const {
  if (well_formed_length(text) != text.size()) {
    encode(repaired_utf8(text), special, tokens);
    return;
  }
  for_each_character(text, [&](std::string_view character) {
    const auto found = tokens_.find(character);
    if (found == tokens_.end()) {
      throw UserError(fmt::format(
          "the character '{}' (bytes {:02x}) is no token: the text that the tokenizer was made "
          "from "
          "did not have it",
          single_line(character),
          fmt::join(std::vector<unsigned char>(character.begin(), character.end()), " ")));
    }
    tokens.push_back(found->second);
  });
}

void CharacterTokenizer::append_bytes(int32_t token, DecodingState& /*state*/,
                                      std::string& bytes) const {
  if (token >= 0 && token < vocabulary_size()) {
    bytes += characters_[token];
  } else {
    bytes += "\xEF\xBF\xBD";
  }
}

std::size_t CharacterTokenizer::last_cut(std::string_view text) const {
  return text.size() - unfinished_length(text);
}

std::string CharacterTokenizer::characters() const {
  std::string all;
  for (const std::string& character : characters_) all += character;
  return all;
}

}  // namespace phalanx
