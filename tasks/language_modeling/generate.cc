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

#include "trainer/api/task.h"

namespace phalanx {
namespace {

constexpr int64_t kBytes = 256;

// The last `count` bytes as token ids [1, count].
at::Tensor tail(const std::string& text, int64_t count) {
  at::Tensor tokens = at::empty({1, count}, at::kLong);
  std::transform(text.end() - count, text.end(), tokens.mutable_data_ptr<int64_t>(),
                 [](char byte) { return static_cast<unsigned char>(byte); });
  return tokens;
}

int64_t draw(const at::Tensor& logits, double temperature, const at::Generator& generator) {
  const at::Tensor on_host = logits.to(at::kCPU, at::kDouble);  // where the generator is
  const bool likeliest = temperature == 0;
  const at::Tensor probabilities = at::softmax(likeliest ? on_host : on_host.div(temperature), -1);
  if (!probabilities.isfinite().all().item<bool>()) {
    throw NoSample("the probabilities of the next byte are not finite");
  }
  if (likeliest) return at::argmax(on_host).item<int64_t>();
  return at::multinomial(probabilities, 1, /*replacement=*/false, generator).item<int64_t>();
}

}  // namespace

std::string generate_bytes(CausalLanguageModel& model, const std::string& prompt, int64_t tokens,
                           double temperature, uint64_t seed) {
  const c10::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  std::string text = prompt;
  for (int64_t i = 0; i < tokens; ++i) {
    const auto seen = std::min<int64_t>(static_cast<int64_t>(text.size()), model.context_length());
    const at::Tensor logits = model.logits(tail(text, seen)).select(0, 0).select(0, -1);
    // A vocabulary may be padded beyond the bytes.
    text += static_cast<char>(draw(logits.narrow(0, 0, kBytes), temperature, generator));
  }
  return text;
}

}  // namespace phalanx
