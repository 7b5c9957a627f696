// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/generation/generate.h"
#include "trainer/generation/generation_config.h"
#include "trainer/generation/writer.h"

namespace phalanx {

/// A text in the search for its tokens.
struct SearchedText {
  std::vector<int32_t> seen;  ///< What repetition_penalty knows of it in the beginning.
  int64_t number = 0;         ///< GenerationInput::number.
};

/// What tokens are searched for, and how.
struct SearchRequest {
  const GenerationConfig& config;
  int64_t vocabulary_size;
  std::vector<int64_t> end_of_text;
  const GenerationHooks& hooks;
};

/// One token after the other: the likeliest, or drawn ones.
std::vector<Generated> search_tokens(Writer& writer, std::vector<SearchedText> texts,
                                     const SearchRequest& request);

/// The likeliest text, by beams.
std::vector<Generated> search_beams(Writer& writer, const std::vector<SearchedText>& texts,
                                    const SearchRequest& request);

/// What both searches ask of a request.
bool ends_text(const SearchRequest& request, int32_t token);
bool is_interrupted(const SearchRequest& request);
bool any_rank(const SearchRequest& request, bool writes);

/// The logits of the tokens that may be written: [rows, tokens], from the first one on. They are
/// those of the vocabulary and those that end a text, which may lie beyond it.
at::Tensor known_of(const at::Tensor& logits, const SearchRequest& request);

/// int64 [values].
at::Tensor tensor_of(std::span<const int64_t> values);

}  // namespace phalanx
