// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/visible_bpe.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "trainer/tokenizers/byte_alphabet.h"
#include "trainer/tokenizers/unsupported_part.h"

namespace phalanx {
namespace {

std::string bytes_of_entry(const std::string& visible) {
  std::optional<std::string> bytes = bytes_of_visible(visible);
  if (bytes) return *std::move(bytes);
  throw UnsupportedPart(fmt::format(
      "'{}' has a character that stands for no byte: this is no byte-level BPE", visible));
}

// The texts of the added tokens that the encoding itself has no use for: they are neither a single
// byte nor part of a merge.
std::set<std::string_view> only_added(const std::vector<AddedToken>& added,
                                      const MergeList& merges) {
  std::set<std::string_view> texts;
  for (const AddedToken& token : added) {
    const auto bytes = bytes_of_visible(token.text);
    if (!bytes || bytes->size() > 1) texts.insert(token.text);
  }
  for (const auto& [left, right] : merges) {
    for (const std::string& used : {left, right, left + right}) texts.erase(used);
  }
  return texts;
}

int32_t token_of(const Vocabulary& vocabulary, const std::string& bytes) {
  const auto token = vocabulary.find(bytes);
  if (token) return *token;
  throw std::invalid_argument(fmt::format(
      "the merges need the token '{}', which the vocabulary lacks", visible_bytes(bytes)));
}

}  // namespace

std::pair<std::string, std::string> split_merge(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos) {
    throw std::invalid_argument(fmt::format("'{}' is no merge: two tokens with a space", line));
  }
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

VisibleBpe read_visible_bpe(std::vector<Vocabulary::Entry> entries,
                            const std::vector<AddedToken>& added, const MergeList& merges) {
  const std::set<std::string_view> dropped = only_added(added, merges);
  std::erase_if(entries, [&](const auto& entry) { return dropped.contains(entry.text); });
  for (Vocabulary::Entry& entry : entries) entry.text = bytes_of_entry(entry.text);
  VisibleBpe bpe{.vocabulary = Vocabulary(std::move(entries)), .merges = {}};
  for (const auto& [left, right] : merges) {
    const std::string left_bytes = bytes_of_entry(left);
    const std::string right_bytes = bytes_of_entry(right);
    const int32_t left_token = token_of(bpe.vocabulary, left_bytes);
    const int32_t right_token = token_of(bpe.vocabulary, right_bytes);
    bpe.merges.add(left_token, right_token, token_of(bpe.vocabulary, left_bytes + right_bytes));
  }
  return bpe;
}

}  // namespace phalanx
