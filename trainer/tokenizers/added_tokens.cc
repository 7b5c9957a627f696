// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/added_tokens.h"

#include <algorithm>
#include <utility>

namespace phalanx {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  for (const AddedToken& added : tokens_) {
    const auto first = static_cast<unsigned char>(added.text.front());
    begins_any_[first] = true;
    if (!added.is_special) begins_ordinary_[first] = true;
  }
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from,
                                                    SpecialText special) const {
  const bool any = special == SpecialText::token;
  const std::array<bool, 256>& begins = any ? begins_any_ : begins_ordinary_;
  for (size_t place = from; place < text.size(); ++place) {
    if (!begins[static_cast<unsigned char>(text[place])]) continue;
    const std::string_view rest = text.substr(place);
    for (const AddedToken& added : tokens_) {
      if ((any || !added.is_special) && rest.starts_with(added.text)) {
        return Match{.begin = place, .end = place + added.text.size(), .token = added.token};
      }
    }
  }
  return std::nullopt;
}

std::optional<int32_t> AddedTokens::token_of(std::string_view text) const {
  const auto found = std::find_if(tokens_.begin(), tokens_.end(),
                                  [&](const AddedToken& added) { return added.text == text; });
  if (found == tokens_.end()) return std::nullopt;
  return found->token;
}

int32_t AddedTokens::size() const {
  int32_t size = 0;
  for (const AddedToken& added : tokens_) size = std::max(size, added.token + 1);
  return size;
}

std::size_t AddedTokens::longest_ordinary() const {
  std::size_t longest = 0;
  for (const AddedToken& added : tokens_) {
    if (!added.is_special) longest = std::max(longest, added.text.size());
  }
  return longest;
}

std::optional<std::string_view> AddedTokens::text_of(int32_t token) const {
  const auto found = std::find_if(tokens_.begin(), tokens_.end(),
                                  [&](const AddedToken& added) { return added.token == token; });
  if (found == tokens_.end()) return std::nullopt;
  return found->text;
}

}  // namespace phalanx
