// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"

namespace phalanx {

/// The samples that it is made of.
struct NumberBatch : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }

  std::vector<int64_t> numbers;
};

/// Samples that are their own numbers; making the batch that holds `broken` throws.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t broken = -1) : size_(size), broken_(broken) {}

  int64_t size() const override { return size_; }
  std::string fingerprint() const override { return "numbers"; }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    auto batch = std::make_unique<NumberBatch>();
    batch->numbers.assign(indices.begin(), indices.end());
    batch->samples = batch->tokens = static_cast<int64_t>(indices.size());
    for (const int64_t index : indices) {
      if (index == broken_) throw std::runtime_error("sample " + std::to_string(index));
    }
    return batch;
  }

 private:
  int64_t size_;
  int64_t broken_;
};

}  // namespace phalanx
