// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/dataset.h"

namespace phalanx {

/// The samples that it is made of.
struct NumberBatch : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }

  std::vector<int64_t> numbers;
};

/// Samples that are their own numbers; making a batch that holds one of `broken` throws.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size, std::set<int64_t> broken = {})
      : size_(size), broken_(std::move(broken)) {}

  int64_t size() const override { return size_; }
  std::string fingerprint() const override { return "numbers"; }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    auto batch = std::make_unique<NumberBatch>();
    batch->numbers.assign(indices.begin(), indices.end());
    batch->samples = batch->tokens = static_cast<int64_t>(indices.size());
    for (const int64_t index : indices) {
      if (!broken_.contains(index)) continue;
      throw BrokenSampleError({.source = "numbers",
                               .kind = "broken on purpose",
                               .message = "sample " + std::to_string(index)});
    }
    return batch;
  }

 private:
  int64_t size_;
  std::set<int64_t> broken_;
};

}  // namespace phalanx
