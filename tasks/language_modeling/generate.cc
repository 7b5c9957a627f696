// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/generate.h"

#include <vector>

#include "trainer/api/task.h"
#include "trainer/generation/generate.h"
#include "trainer/generation/token_chooser.h"

namespace phalanx {

std::string generate_text(CausalLanguageModel& model, const Tokenizer& tokenizer,
                          const std::string& prompt, int64_t tokens, double temperature,
                          uint64_t seed) {
  GenerationConfig config;
  config.max_new_tokens = tokens;
  config.temperature = temperature;
  config.seed = static_cast<int64_t>(seed);
  std::vector<int32_t> text = encode(tokenizer, prompt);
  if (tokens == 0) return decoded_bytes(tokenizer, text);
  try {
    const std::vector<Generated> generated =
        generate(model, std::vector{GenerationInput{.tokens = text}},
                 {.vocabulary_size = tokenizer.vocabulary_size()}, config);
    text.insert(text.end(), generated[0].tokens.begin(), generated[0].tokens.end());
  } catch (const NotFinite& e) {
    throw NoSample(e.what());
  }
  return decoded_bytes(tokenizer, text);
}

}  // namespace phalanx
