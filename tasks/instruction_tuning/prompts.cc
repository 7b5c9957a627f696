// SPDX-License-Identifier: Apache-2.0
#include "tasks/instruction_tuning/prompts.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <iterator>

#include "trainer/data/padded_rows.h"

namespace phalanx {
namespace {

std::span<const int64_t> row_of(const at::Tensor& rows, int64_t row) {
  const auto length = static_cast<size_t>(rows.size(1));
  return {rows.const_data_ptr<int64_t>() + row * rows.size(1), length};
}

}  // namespace

std::unique_ptr<Batch> Prompts::batch(std::span<const int64_t> indices) const {
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> targets;
  for (const int64_t index : indices) {
    const std::vector<int32_t> tokens =
        texts_.tokens(index, options_.sequence_length, "task.data.sequence_length");
    if (tokens.empty()) {
      texts_.fail(index, "a prompt without tokens", "the prompt has no tokens");
    }
    inputs.emplace_back(tokens.begin(), tokens.end());
    targets.emplace_back(tokens.size(), kNoTarget).back() = options_.end_of_text;
  }
  auto batch = std::make_unique<TokenBatch>();
  batch->samples = std::ssize(indices);
  batch->tokens = batch->samples;
  batch->inputs = padded_rows(inputs, 0);
  batch->targets = padded_rows(targets, kNoTarget);
  return batch;
}

std::vector<PromptAndAnswer> prompts_and_answers(const TokenBatch& batch, int64_t end_of_text) {
  const at::Tensor all_inputs = batch.inputs.to(at::kCPU).contiguous();
  const at::Tensor all_targets = batch.targets.to(at::kCPU).contiguous();
  const std::vector<int64_t>& numbers = batch.sample_numbers;
  std::vector<PromptAndAnswer> samples;
  for (int64_t row = 0; row < all_inputs.size(0); ++row) {
    const std::span<const int64_t> inputs = row_of(all_inputs, row);
    const std::span<const int64_t> targets = row_of(all_targets, row);
    // The last token of the prompt is the one that the first target follows.
    const auto first = std::ranges::find_if(targets, [](int64_t t) { return t != kNoTarget; });
    const auto length = static_cast<size_t>(first - targets.begin()) + 1;
    const auto end = std::find(first, targets.end(), kNoTarget);
    PromptAndAnswer sample{
        .prompt = {.tokens = {inputs.begin(), inputs.begin() + length},
                   .number = numbers.empty() ? row : numbers[static_cast<size_t>(row)]},
        .answer = {first, end}};
    // A sample that was cut has none.
    if (sample.answer.back() == end_of_text) sample.answer.pop_back();
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace phalanx
