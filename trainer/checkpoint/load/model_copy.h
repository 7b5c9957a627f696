// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/contents.h"
#include "trainer/checkpoint/save/write_plan.h"
#include "trainer/io/byte_progress.h"

namespace phalanx {

/// A tensor that is copied, perhaps under another name and into another precision.
struct CopiedTensor {
  const ManifestTensor* source = nullptr;  ///< In the contents that are copied from.
  std::string name;
  at::ScalarType dtype = at::kFloat;
  /// What is written in place of the values from element `begin` on, as many; none: they are.
  std::function<at::Tensor(int64_t begin, const at::Tensor& values)> changed = {};
};

/// Writes tensors of a checkpoint as a model of safetensors files: one, or several with an index,
/// as a save does. Holds no more than a few pieces of them in memory.
class ModelCopy {
 public:
  /// Copies from the folder `source`, whose `contents` must outlive this. Names are unique.
  ModelCopy(std::filesystem::path source, const Contents& contents,
            std::vector<CopiedTensor> tensors, const PlanLimits& limits = {});

  /// Writes and fsyncs the files into a folder that has none of their names. Returns their
  /// contents. Throws UserError where a value is beyond
  /// the range of its new dtype, CheckpointError where what is read is damaged, IoError.
  /// `progress`, where given, tells how far that is.
  Contents write(const std::filesystem::path& folder, ByteProgress* progress = nullptr) const;

 private:
  std::filesystem::path source_;
  const Contents& contents_;
  std::vector<CopiedTensor> tensors_;
  WritePlan plan_;
};

}  // namespace phalanx
