// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/shared_tokens.h"

#include <array>
#include <cstddef>
#include <initializer_list>
#include <unordered_map>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr int64_t kNone = -1;

/// The tokens of a vocabulary by what they stand for.
struct ByBytes {
  std::unordered_map<std::string, std::vector<int64_t>> texts;
  std::vector<bool> is_text;
};

// What makes a character, mostly a rare one, together with each last byte.
std::string begin_of_character(unsigned lead) {
  const auto text = [](std::initializer_list<unsigned> bytes) {
    std::string begin;
    for (const unsigned byte : bytes) begin += static_cast<char>(byte);
    return begin;
  };
  if (lead < 0xE0) return text({lead});
  if (lead < 0xF0) return text({lead, lead == 0xE0 ? 0xBFU : 0x9FU});
  return text({lead, lead == 0xF4 ? 0x8FU : 0xBFU, 0xBFU});
}

/// The tokens of bytes that are no character by themselves, as rare characters are encoded.
std::unordered_map<int32_t, char> tokens_of_bytes(const Tokenizer& tokenizer) {
  std::unordered_map<int32_t, char> bytes;
  for (unsigned lead = 0xC2; lead <= 0xF4; ++lead) {
    for (unsigned last = 0x80; last <= 0xBF; ++last) {
      const std::string character = begin_of_character(lead) + static_cast<char>(last);
      std::vector<int32_t> tokens;
      try {
        tokens = encode(tokenizer, character);
      } catch (const UserError&) {
        continue;  // It has no token for this character.
      }
      if (tokens.size() < character.size()) continue;
      // A space may stand before them.
      tokens.erase(tokens.begin(), tokens.end() - std::ssize(character));
      if (decoded_bytes(tokenizer, tokens) != character) continue;
      for (std::size_t i = 0; i < tokens.size(); ++i) bytes.emplace(tokens[i], character[i]);
    }
  }
  return bytes;
}

ByBytes by_bytes(const Tokenizer& tokenizer, int64_t count) {
  ByBytes tokens;
  tokens.is_text.resize(static_cast<std::size_t>(count));
  const auto single = tokens_of_bytes(tokenizer);
  for (int64_t token = 0; token < count; ++token) {
    auto bytes = bytes_within_text(tokenizer, static_cast<int32_t>(token));
    if (!bytes) {
      const auto found = single.find(static_cast<int32_t>(token));
      if (found == single.end()) continue;
      bytes = std::string(1, found->second);
    }
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
    // The token of a byte stands before the piece with that text, which is the one in use.
    auto last = tokens.rbegin();
    for (auto other = found->second.rbegin();
         last != tokens.rend() && other != found->second.rend(); ++last, ++other) {
      same[static_cast<std::size_t>(*last)] = *other;
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
