// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/shared_tokens.h"

#include <array>
#include <cstddef>
#include <unordered_map>

namespace phalanx {
namespace {

constexpr int64_t kNone = -1;

/// The tokens of a vocabulary by what they stand for.
struct ByBytes {
  std::unordered_map<std::string, std::vector<int64_t>> texts;
  std::vector<bool> is_text;
};

ByBytes by_bytes(const Tokenizer& tokenizer, int64_t count) {
  ByBytes tokens;
  tokens.is_text.resize(static_cast<std::size_t>(count));
  for (int64_t token = 0; token < count; ++token) {
    auto bytes = bytes_within_text(tokenizer, static_cast<int32_t>(token));
    if (!bytes) continue;
    tokens.is_text[static_cast<std::size_t>(token)] = true;
    tokens.texts[*std::move(bytes)].push_back(token);
  }
  return tokens;
}

}  // namespace

std::optional<std::string> bytes_within_text(const Tokenizer& tokenizer, int32_t token) {
  if (token < 0 || token >= tokenizer.vocabulary_size()) return std::nullopt;
  // At the beginning of a text it may lack its space: what the second of two adds counts.
  const std::string once = decoded_bytes(tokenizer, std::array{token});
  const std::string twice = decoded_bytes(tokenizer, std::array{token, token});
  if (!twice.starts_with(once) || twice.size() == once.size()) return std::nullopt;
  std::string bytes = twice.substr(once.size());
  if (bytes.find("\uFFFD") != std::string::npos) return std::nullopt;
  return bytes;
}

std::vector<int64_t> tokens_there(const Tokenizer& here, int64_t count, const Tokenizer& there,
                                  int64_t count_there) {
  const ByBytes ours = by_bytes(here, count);
  const ByBytes theirs = by_bytes(there, count_there);
  std::vector<int64_t> same(static_cast<std::size_t>(count), kNone);
  for (const auto& [bytes, tokens] : ours.texts) {
    const auto found = theirs.texts.find(bytes);
    if (found == theirs.texts.end()) continue;
    for (std::size_t i = 0; i < tokens.size() && i < found->second.size(); ++i) {
      same[static_cast<std::size_t>(tokens[i])] = found->second[i];
    }
  }
  for (std::size_t token = 0; token < same.size() && token < theirs.is_text.size(); ++token) {
    if (!ours.is_text[token] && !theirs.is_text[token]) same[token] = static_cast<int64_t>(token);
  }
  const auto our_end = here.end_of_text();
  const auto their_end = there.end_of_text();
  if (our_end && their_end && *our_end < count && *their_end < count_there) {
    same[static_cast<std::size_t>(*our_end)] = *their_end;
  }
  return same;
}

}  // namespace phalanx
