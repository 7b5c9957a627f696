// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "trainer/api/task.h"

namespace phalanx {
namespace {

// The last `count` tokens [1, count].
at::Tensor tail(const std::vector<int32_t>& tokens, int64_t count) {
  at::Tensor last = at::empty({1, count}, at::kLong);
  std::copy(tokens.end() - count, tokens.end(), last.mutable_data_ptr<int64_t>());
  return last;
}

int64_t draw(const at::Tensor& logits, double temperature, const at::Generator& generator) {
  const at::Tensor on_host = logits.to(at::kCPU, at::kDouble);  // where the generator is
  const bool likeliest = temperature == 0;
  const at::Tensor probabilities = at::softmax(likeliest ? on_host : on_host.div(temperature), -1);
  if (!probabilities.isfinite().all().item<bool>()) {
    throw NoSample("the probabilities of the next token are not finite");
  }
  if (likeliest) return at::argmax(on_host).item<int64_t>();
  return at::multinomial(probabilities, 1, /*replacement=*/false, generator).item<int64_t>();
}

}  // namespace

std::string generate_text(CausalLanguageModel& model, const Tokenizer& tokenizer,
                          const std::string& prompt, int64_t tokens, double temperature,
                          uint64_t seed) {
  const c10::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<int32_t> text = encode(tokenizer, prompt);
  for (int64_t i = 0; i < tokens; ++i) {
    const auto seen = std::min<int64_t>(std::ssize(text), model.context_length());
    const at::Tensor logits = model.logits(tail(text, seen)).select(0, 0).select(0, -1);
    // A model's vocabulary may be padded beyond the tokenizer's.
    const at::Tensor known = logits.narrow(0, 0, tokenizer.vocabulary_size());
    text.push_back(static_cast<int32_t>(draw(known, temperature, generator)));
  }
  return decoded_bytes(tokenizer, text);
}

}  // namespace phalanx
