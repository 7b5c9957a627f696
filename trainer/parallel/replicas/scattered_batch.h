// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/api/batch.h"

namespace phalanx {

/// A micro-batch that is cut along its samples, a part for each replica: each is a batch of the
/// task's own type, with the counts of its own samples. As a batch it has the tensors, samples and
/// tokens of all parts.
class ScatteredBatch final : public Batch {
 public:
  /// `parts`: at least one, in the order of the samples.
  explicit ScatteredBatch(std::vector<std::unique_ptr<Batch>> parts);

  /// Each replica moves its own part to its device.
  std::span<const std::unique_ptr<Batch>> parts() const { return parts_; }

  std::vector<at::Tensor*> tensors() override;
  std::vector<at::Tensor*> model_inputs() override;

 private:
  std::vector<std::unique_ptr<Batch>> parts_;
};

/// torch.chunk's sizes: at most `chunks` of them, the first ones alike, the last one perhaps
/// smaller; fewer where there are fewer samples.
std::vector<int64_t> chunk_sizes(int64_t samples, int64_t chunks);

}  // namespace phalanx
