// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/left_on_host.h"

namespace phalanx {

/// A micro-batch that is cut along its samples, a part for each replica: each is a batch of the
/// task's own type, with the counts of its own samples. As a batch it has the tensors, samples and
/// tokens of all parts. It is left on the host: a part goes to its replica's device alone.
class ScatteredBatch final : public Batch, public LeftOnHost {
 public:
  /// `parts`: at least one, in the order of the samples.
  explicit ScatteredBatch(std::vector<std::unique_ptr<Batch>> parts);

  /// Each replica moves its own part to its device.
  std::span<const std::unique_ptr<Batch>> parts() const { return parts_; }

  std::vector<at::Tensor*> tensors() override;
  std::vector<at::Tensor*> model_inputs() override;
  /// "part 1: input_ids"; a part's number is its replica's.
  std::vector<std::string_view> tensor_names() const override;

 private:
  std::vector<std::unique_ptr<Batch>> parts_;
  std::vector<std::string> names_;  ///< Those of all tensors.
};

/// torch.chunk's sizes: at most `chunks` of them, the first ones alike, the last one perhaps
/// smaller; fewer where there are fewer samples.
std::vector<int64_t> chunk_sizes(int64_t samples, int64_t chunks);

}  // namespace phalanx
