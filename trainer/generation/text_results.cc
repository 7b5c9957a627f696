// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/text_results.h"

#include <iterator>
#include <string>

#include "trainer/metrics/rouge.h"

namespace phalanx {

Prediction prediction_of(const GeneratedText& text) {
  return {{"generated", text.text},
          {"generated_tokens", std::ssize(text.tokens)},
          {"finish_reason", std::string(to_string(text.reason))}};
}

NamedValues scores_of(std::string_view text, std::string_view target) {
  const Rouge scores = rouge(text, target);
  return {{"exact_match", is_exact_match(text, target) ? 1.0 : 0.0},
          {"rouge1", scores.rouge1},
          {"rouge2", scores.rouge2},
          {"rougeL", scores.rouge_l},
          {"rougeLsum", scores.rouge_lsum}};
}

}  // namespace phalanx
