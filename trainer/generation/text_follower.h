// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/tokenizers/streaming_decoder.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Follows a text as its tokens come: gives it out in whole characters, and ends it before the
/// first text to stop at, of which no part is given out.
class TextFollower {
 public:
  /// The text goes on from `prompt`, if that has tokens. `tokenizer` must live longer than this.
  TextFollower(const Tokenizer& tokenizer, std::vector<std::string> stops,
               std::span<const int32_t> prompt);

  /// What is certain of the text with this token, and was not given out; perhaps nothing.
  std::string add(int32_t token);

  /// Whether the text is at an end.
  bool is_stopped() const { return is_stopped_; }

  /// What is left of it at its end.
  std::string finish();

 private:
  std::string take(std::string text);
  size_t held_back() const;

  StreamingDecoder decoder_;
  const std::vector<std::string> stops_;
  std::string pending_;  // Characters that may begin a text to stop at.
  bool is_stopped_ = false;
};

}  // namespace phalanx
