// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/sentinel_tokens.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr std::string_view kBegin = "<extra_id_";

std::string text_of_sentinel(int64_t number) {
  return std::string(kBegin) + std::to_string(number) + ">";
}

/// A sentinel in a text.
struct Sentinel {
  std::size_t begin = 0;
  std::size_t end = 0;
  int64_t number = 0;
};

/// No place is known where its texts can be cut: a sentinel may lie across it.
class WithSentinels final : public Tokenizer {
 public:
  WithSentinels(std::shared_ptr<const Tokenizer> tokenizer, int64_t first, int64_t count,
                SentinelTexts texts)
      : tokenizer_(std::move(tokenizer)), first_(first), count_(count), texts_(texts) {}

  void encode(std::string_view text, SpecialText special,
              std::vector<int32_t>& tokens) const override {
    if (texts_ == SentinelTexts::as_special && special == SpecialText::ordinary) {
      tokenizer_->encode(text, special, tokens);
      return;
    }
    std::size_t done = 0;
    while (const auto found = find(text, done)) {
      encode_between(text.substr(done, found->begin - done), special, tokens);
      tokens.push_back(static_cast<int32_t>(first_ - found->number));
      done = found->end;
    }
    if (done == 0 || done < text.size()) tokenizer_->encode(text.substr(done), special, tokens);
  }

  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override {
    if (token > first_ || token <= first_ - count_) {
      tokenizer_->append_bytes(token, state, bytes);
      return;
    }
    tokenizer_->append_rest(state, bytes);
    bytes += text_of_sentinel(first_ - token);
    state.begins_text = false;
  }

  void append_rest(DecodingState& state, std::string& bytes) const override {
    tokenizer_->append_rest(state, bytes);
  }
  int32_t vocabulary_size() const override {
    return std::max(tokenizer_->vocabulary_size(), static_cast<int32_t>(first_ + 1));
  }
  std::optional<int32_t> end_of_text() const override { return tokenizer_->end_of_text(); }

 private:
  void encode_between(std::string_view text, SpecialText special,
                      std::vector<int32_t>& tokens) const {
    if (!text.empty()) tokenizer_->encode(text, special, tokens);
  }

  std::optional<Sentinel> find(std::string_view text, std::size_t from) const {
    for (;;) {
      const std::size_t begin = text.find(kBegin, from);
      if (begin == std::string_view::npos) return std::nullopt;
      const char* const digits = text.data() + begin + kBegin.size();
      const char* const end = text.data() + text.size();
      int64_t number = -1;
      const auto read = std::from_chars(digits, end, number);
      const bool is_plain = read.ec == std::errc() && (*digits != '0' || read.ptr == digits + 1);
      if (is_plain && number >= 0 && number < count_ && read.ptr != end && *read.ptr == '>') {
        return Sentinel{.begin = begin,
                        .end = static_cast<std::size_t>(read.ptr + 1 - text.data()),
                        .number = number};
      }
      from = begin + kBegin.size();
    }
  }

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const int64_t first_;
  const int64_t count_;
  const SentinelTexts texts_;
};

bool has_sentinels(const Tokenizer& tokenizer) {
  try {
    return encode(tokenizer, "<extra_id_0>", SpecialText::token).size() == 1;
  } catch (const UserError&) {
    return false;  // It has no token for one of these characters.
  }
}

}  // namespace

int64_t first_sentinel_behind(const Tokenizer& tokenizer, int64_t count) {
  return tokenizer.vocabulary_size() + count - 1;
}

std::shared_ptr<const Tokenizer> with_sentinels(std::shared_ptr<const Tokenizer> tokenizer,
                                                int64_t first, int64_t count, SentinelTexts texts) {
  if (has_sentinels(*tokenizer)) return tokenizer;
  return std::make_shared<WithSentinels>(std::move(tokenizer), first, count, texts);
}

int64_t sentinels_of(const Tokenizer& tokenizer) {
  if (!has_sentinels(tokenizer)) return 0;
  // One that knows no such text may take any for the same token.
  for (int64_t count = 0;; ++count) {
    const std::string text = text_of_sentinel(count);
    const std::vector<int32_t> tokens = encode(tokenizer, text, SpecialText::token);
    if (tokens.size() != 1 || decode(tokenizer, tokens) != text) return count;
  }
}

}  // namespace phalanx
