// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/special_reading.h"

#include <utility>

namespace phalanx {
namespace {

/// No place is known where its texts can be cut: a special token may lie across it.
class SpecialReading final : public Tokenizer {
 public:
  explicit SpecialReading(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  void encode(std::string_view text, SpecialText /*special*/,
              std::vector<int32_t>& tokens) const override {
    tokenizer_->encode(text, SpecialText::token, tokens);
  }
  void append_bytes(int32_t token, DecodingState& state, std::string& bytes) const override {
    tokenizer_->append_bytes(token, state, bytes);
  }
  void append_rest(DecodingState& state, std::string& bytes) const override {
    tokenizer_->append_rest(state, bytes);
  }
  int32_t vocabulary_size() const override { return tokenizer_->vocabulary_size(); }
  std::optional<int32_t> end_of_text() const override { return tokenizer_->end_of_text(); }

  const std::shared_ptr<const Tokenizer>& wrapped() const { return tokenizer_; }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::shared_ptr<const Tokenizer> reading_special_tokens(
    std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<SpecialReading>(std::move(tokenizer));
}

std::shared_ptr<const Tokenizer> reading_as_told(std::shared_ptr<const Tokenizer> tokenizer) {
  const auto* special = dynamic_cast<const SpecialReading*>(tokenizer.get());
  return special == nullptr ? tokenizer : special->wrapped();
}

}  // namespace phalanx
