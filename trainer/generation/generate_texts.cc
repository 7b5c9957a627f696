// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/generate_texts.h"

#include <algorithm>
#include <utility>

#include "trainer/generation/text_follower.h"

namespace phalanx {
namespace {

/// The texts of a batch.
class Texts {
 public:
  Texts(const TextModel& model, std::span<const GenerationInput> inputs,
        const GenerationConfig& config, const TextHooks& hooks)
      : hooks_(hooks), results_(inputs.size()) {
    if (model.tokenizer == nullptr) return;
    const bool goes_on = std::holds_alternative<CausalLanguageModel*>(model.model);
    for (const GenerationInput& input : inputs) {
      const std::span<const int32_t> prompt = goes_on ? input.tokens : std::span<const int32_t>();
      followers_.emplace_back(*model.tokenizer, config.stop, prompt);
    }
  }

  // Whether the text goes on.
  bool add(size_t text, int32_t token) {
    if (followers_.empty()) return true;
    give(text, followers_[text].add(token));
    return !followers_[text].is_stopped();
  }

  std::vector<GeneratedText> finish(std::vector<Generated> generated) {
    for (size_t i = 0; i < results_.size(); ++i) {
      results_[i].tokens = std::move(generated[i].tokens);
      results_[i].reason = generated[i].reason;
      if (followers_.empty()) continue;
      give(i, followers_[i].finish());
      if (followers_[i].is_stopped()) results_[i].reason = FinishReason::stop;
    }
    return std::move(results_);
  }

 private:
  void give(size_t text, const std::string& part) {
    results_[text].text += part;
    if (hooks_.on_text && !part.empty()) hooks_.on_text(text, part);
  }

  const TextHooks& hooks_;
  std::vector<TextFollower> followers_;
  std::vector<GeneratedText> results_;
};

bool holds_a_stop(const TextModel& model, const GenerationConfig& config,
                  std::span<const int32_t> tokens) {
  if (model.tokenizer == nullptr) return false;
  TextFollower follower(*model.tokenizer, config.stop, {});
  for (const int32_t token : tokens) follower.add(token);
  return follower.is_stopped();
}

}  // namespace

std::vector<GeneratedText> generate_texts(const TextModel& model,
                                          std::span<const GenerationInput> inputs,
                                          const GenerationConfig& config, const TextHooks& hooks) {
  Texts texts(model, inputs, config, hooks);
  const int64_t known = std::visit([](auto* each) { return each->vocabulary_size(); }, model.model);
  const GenerationTokens tokens{
      .vocabulary_size = model.tokenizer == nullptr
                             ? known
                             : std::min<int64_t>(known, model.tokenizer->vocabulary_size()),
      .end_of_text = model.end_of_text};
  GenerationHooks on_tokens{.is_interrupted = hooks.is_interrupted, .any_rank = hooks.any_rank};
  const bool searches = config.num_beams > 1;
  if (!searches) {
    on_tokens.on_token = [&](size_t text, int32_t token) { return texts.add(text, token); };
  } else if (!config.stop.empty()) {
    on_tokens.is_stopped = [&](std::span<const int32_t> written) {
      return holds_a_stop(model, config, written);
    };
  }
  std::vector<Generated> generated =
      std::visit([&](auto* writer) { return generate(*writer, inputs, tokens, config, on_tokens); },
                 model.model);
  if (searches) {
    for (size_t i = 0; i < generated.size(); ++i) {
      for (const int32_t token : generated[i].tokens) texts.add(i, token);
    }
  }
  return texts.finish(std::move(generated));
}

}  // namespace phalanx
