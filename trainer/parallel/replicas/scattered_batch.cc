// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/scattered_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace phalanx {
namespace {

void add_names(Batch& part, size_t number, std::vector<std::string>& names) {
  const std::vector<std::string_view> own = part.tensor_names();
  const size_t count = part.tensors().size();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = i < own.size() ? std::string(own[i]) : fmt::format("tensor {}", i);
    names.push_back(fmt::format("part {}: {}", number, name));
  }
}

}  // namespace

ScatteredBatch::ScatteredBatch(std::vector<std::unique_ptr<Batch>> parts)
    : parts_(std::move(parts)) {
  for (const auto& part : parts_) {
    add_names(*part, static_cast<size_t>(&part - parts_.data()), names_);
    samples += part->samples;
    tokens += part->tokens;
    sample_numbers.insert(sample_numbers.end(), part->sample_numbers.begin(),
                          part->sample_numbers.end());
  }
}

std::vector<at::Tensor*> ScatteredBatch::tensors() {
  std::vector<at::Tensor*> all;
  for (const auto& part : parts_) {
    const std::vector<at::Tensor*> own = part->tensors();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<at::Tensor*> ScatteredBatch::model_inputs() {
  std::vector<at::Tensor*> all;
  for (const auto& part : parts_) {
    const std::vector<at::Tensor*> own = part->model_inputs();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<std::string_view> ScatteredBatch::tensor_names() const {
  return {names_.begin(), names_.end()};
}

std::vector<int64_t> chunk_sizes(int64_t samples, int64_t chunks) {
  std::vector<int64_t> sizes;
  const int64_t size = (samples + chunks - 1) / chunks;
  for (int64_t rest = samples; rest > 0; rest -= size) sizes.push_back(std::min(size, rest));
  return sizes;
}

}  // namespace phalanx
