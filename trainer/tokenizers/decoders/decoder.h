// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <string>
#include <string_view>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// A part of the text of a token, whole characters. A decoder that makes one long token of many
/// gives it part by part, as they come.
struct TokenPart {
  std::string_view text;
  bool begins = true;  ///< A token.
  bool ends = true;
};

/// Changes the texts of tokens, one after the other, into those that make the decoded text, as a
/// decoder of the package tokenizers does with all at once. Thread-safe.
class Decoder {
 public:
  using Give = c10::function_ref<void(const TokenPart& part)>;

  virtual ~Decoder() = default;

  virtual void take(const TokenPart& part, DecoderState& state, Give give) const = 0;

  /// After the last token.
  virtual void finish(DecoderState& /*state*/, Give /*give*/) const {}
};

/// A decoder that needs each token as a whole.
class TokenDecoder : public Decoder {
 public:
  void take(const TokenPart& part, DecoderState& state, Give give) const final;

 protected:
  virtual void take_token(std::string_view token, DecoderState& state, Give give) const = 0;
};

/// `text` with `to` for each `from`, which is not empty.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace phalanx
