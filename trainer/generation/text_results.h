// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trainer/api/named_values.h"
#include "trainer/api/prediction.h"
#include "trainer/generation/generate_texts.h"

namespace phalanx {

/// A text as a row of `trainer predict`: generated, generated_tokens, finish_reason.
Prediction prediction_of(const GeneratedText& text);

/// exact_match, rouge1, rouge2, rougeL and rougeLsum of a text beside its target.
NamedValues scores_of(std::string_view text, std::string_view target);

}  // namespace phalanx
