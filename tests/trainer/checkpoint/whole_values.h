// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/io/file.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

/// The values of whole tensors as plain bytes, a file for each, that ranks write and read their
/// ranges of: what checkpoints are compared with, made by none of their code.
class WholeValues {
 public:
  explicit WholeValues(std::filesystem::path folder) : folder_(std::move(folder)) {
    create_folders(folder_);
  }

  /// Every rank writes what it holds.
  void write(std::span<const ShardedTensorView> views) const {
    for (const auto& view : views) {
      File file(folder_ / view.name, O_WRONLY | O_CREAT);
      const auto* const bytes = static_cast<const std::byte*>(view.local.const_data_ptr());
      file.write_at({bytes, view.local.nbytes()}, offset(view));
    }
  }

  /// The largest difference to these values; 0: they are the same, bit for bit.
  double difference(std::span<const ShardedTensorView> views) const {
    double most = 0;
    for (const auto& view : views) {
      const at::Tensor wanted = read(view);
      if (same_bytes(wanted, view.local)) continue;
      const at::Tensor differences = view.local.sub(wanted).abs();
      // What compares as equal, or as nothing, but has other bits.
      most = std::max({most, differences.max().item<double>(), 1e-300});
      if (differences.isnan().any().item<bool>()) return std::numeric_limits<double>::infinity();
    }
    return most;
  }

 private:
  static uint64_t offset(const ShardedTensorView& view) {
    return static_cast<uint64_t>(view.begin) * c10::elementSize(view.dtype);
  }
  static bool same_bytes(const at::Tensor& left, const at::Tensor& right) {
    return left.nbytes() == 0 ||
           std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
  }
  at::Tensor read(const ShardedTensorView& view) const {
    const at::Tensor values = tensors::empty(view.local.sizes(), view.local.options());
    File(folder_ / view.name, O_RDONLY)
        .read({static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()}, offset(view));
    return values;
  }

  std::filesystem::path folder_;
};

}  // namespace phalanx
