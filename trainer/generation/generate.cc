// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/generate.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>

#include "trainer/generation/causal_writer.h"
#include "trainer/generation/search.h"
#include "trainer/generation/sequence_writer.h"

namespace phalanx {
namespace {

std::vector<Generated> search(Writer& writer, std::vector<SearchedText> texts,
                              const GenerationTokens& tokens, const GenerationConfig& config,
                              const GenerationHooks& hooks) {
  const SearchRequest request{.config = config,
                              .vocabulary_size = tokens.vocabulary_size,
                              .end_of_text = config.eos_token_id.value_or(tokens.end_of_text),
                              .hooks = hooks};
  return config.num_beams > 1 ? search_beams(writer, texts, request)
                              : search_tokens(writer, std::move(texts), request);
}

}  // namespace

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::length:
      return "length";
    case FinishReason::eos:
      return "eos";
    case FinishReason::stop:
      return "stop";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return {};
}

std::vector<Generated> generate(CausalLanguageModel& model, std::span<const GenerationInput> inputs,
                                const GenerationTokens& tokens, const GenerationConfig& config,
                                const GenerationHooks& hooks) {
  const c10::NoGradGuard no_grad;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<SearchedText> texts;
  for (const GenerationInput& input : inputs) {
    prompts.push_back(input.tokens);
    texts.push_back({.seen = input.tokens, .number = input.number});
  }
  CausalWriter writer(model, prompts, config.use_cache);
  return search(writer, std::move(texts), tokens, config, hooks);
}

std::vector<Generated> generate(SequenceToSequenceModel& model,
                                std::span<const GenerationInput> inputs,
                                const GenerationTokens& tokens, const GenerationConfig& config,
                                const GenerationHooks& hooks) {
  const c10::NoGradGuard no_grad;
  const auto rows = std::ssize(inputs);
  int64_t longest = 0;
  for (const auto& input : inputs) longest = std::max<int64_t>(longest, std::ssize(input.tokens));
  const at::Tensor read = at::zeros({rows, longest}, at::kLong);
  const at::Tensor mask = at::zeros({rows, longest}, at::kBool);
  std::vector<SearchedText> texts;
  for (int64_t row = 0; row < rows; ++row) {
    const GenerationInput& input = inputs[static_cast<size_t>(row)];
    const auto length = std::ssize(input.tokens);
    std::copy(input.tokens.begin(), input.tokens.end(),
              read.mutable_data_ptr<int64_t>() + row * longest);
    mask[row].narrow(0, 0, length).fill_(true);
    texts.push_back(
        {.seen = {static_cast<int32_t>(model.decoder_start_token())}, .number = input.number});
  }
  SequenceWriter writer(model, read, mask.all().item<bool>() ? at::Tensor() : mask,
                        config.use_cache);
  return search(writer, std::move(texts), tokens, config, hooks);
}

}  // namespace phalanx
