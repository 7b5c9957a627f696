// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/vocabulary.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/base/utf8.h"

namespace phalanx {

size_t TextHash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

Vocabulary::Vocabulary(std::vector<Entry> entries) {
  int32_t largest = -1;
  for (const Entry& entry : entries) {
    if (entry.token < 0 || entry.token > kLargest) {
      throw std::invalid_argument(fmt::format("the token of '{}' is {}, not in [0, {}]",
                                              single_line(entry.text), entry.token, kLargest));
    }
    largest = std::max(largest, entry.token);
  }
  texts_.resize(static_cast<size_t>(largest) + 1);
  tokens_.reserve(entries.size());
  for (Entry& entry : entries) {
    std::optional<std::string>& text = texts_[entry.token];
    if (text) {
      throw std::invalid_argument(fmt::format("'{}' and '{}' are both the token {}",
                                              single_line(*text), single_line(entry.text),
                                              entry.token));
    }
    text = std::move(entry.text);
    const auto [other, is_new] = tokens_.emplace(*text, entry.token);
    if (!is_new) {
      throw std::invalid_argument(fmt::format("the tokens {} and {} are both '{}'", other->second,
                                              entry.token, single_line(*text)));
    }
  }
}

std::optional<std::string_view> Vocabulary::text_of(int32_t token) const {
  if (token < 0 || token >= size()) return std::nullopt;
  return texts_[token];
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  const auto found = tokens_.find(text);
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

}  // namespace phalanx
