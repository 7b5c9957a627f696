// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/generation_config.h"

#include "trainer/config/tree/schema.h"

namespace phalanx {

void GenerationConfig::describe(config::Schema<GenerationConfig>& s) {
  s.field("max_new_tokens", &GenerationConfig::max_new_tokens, "the longest text that is written")
      .at_least(1)
      .unit("tokens")
      .resume_may_change();
  s.field(
       "temperature", &GenerationConfig::temperature,
       "0 takes the likeliest token; above 0 tokens are drawn, and below 1 likely ones more often")
      .at_least(0)
      .resume_may_change();
  s.field("top_k", &GenerationConfig::top_k, "draw out of the k likeliest tokens; null: of all")
      .at_least(1)
      .resume_may_change();
  s.field("top_p", &GenerationConfig::top_p,
          "draw out of the likeliest tokens that have this probability together")
      .greater_than(0)
      .at_most(1)
      .resume_may_change();
  s.field("repetition_penalty", &GenerationConfig::repetition_penalty,
          "above 1 makes tokens that were there before less likely (Keskar et al. 2019); 1: none")
      .greater_than(0)
      .resume_may_change();
  s.field("num_beams", &GenerationConfig::num_beams,
          "beams of a beam search; 1: no search, one token after the other")
      .at_least(1)
      .at_most(1024)
      .resume_may_change();
  s.field("length_penalty", &GenerationConfig::length_penalty,
          "a finished beam's score is its log-probability over its length to this power: above 0 "
          "prefers long texts")
      .resume_may_change();
  s.field("early_stopping", &GenerationConfig::early_stopping,
          "end a search once num_beams texts are finished, although another may still be better")
      .resume_may_change();
  s.field("eos_token_id", &GenerationConfig::eos_token_id,
          "the tokens that end a text; null: the model's end-of-text token; []: none")
      .resume_may_change();
  s.field("stop", &GenerationConfig::stop,
          "texts that end what is written; they are left out of it")
      .resume_may_change();
  s.field("seed", &GenerationConfig::seed, "of the draws").at_least(0).resume_may_change();
  s.field("use_cache", &GenerationConfig::use_cache,
          "keep the keys and values of earlier tokens; false computes them again with each token")
      .resume_may_change();
  s.check([](const GenerationConfig& c) -> std::optional<std::string> {
    if (c.temperature > 0 && c.num_beams > 1) {
      return "num_beams searches the likeliest text, and temperature draws one: set num_beams: 1 "
             "or "
             "temperature: 0";
    }
    for (const std::string& text : c.stop) {
      if (text.empty()) return "stop: an empty text would end every text at once";
    }
    return std::nullopt;
  });
  s.ineffective({"top_k", "top_p", "seed"}, "temperature is 0, so that nothing is drawn",
                [](const GenerationConfig& c) { return c.temperature == 0; });
  s.ineffective({"length_penalty", "early_stopping"}, "num_beams is 1",
                [](const GenerationConfig& c) { return c.num_beams == 1; });
}

}  // namespace phalanx
