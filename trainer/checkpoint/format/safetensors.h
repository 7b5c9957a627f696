// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/format/safetensors_header.h"
#include "trainer/io/file.h"

namespace phalanx {

/// Throws std::logic_error unless the view holds its whole tensor, of its dtype: what one rank
/// alone can write and fill.
void require_whole(const ShardedTensorView& view);

/// Throws std::logic_error unless a view's elements are those of its range, which lies in its
/// box, and that in its shape.
void require_sound(const ShardedTensorView& view);

/// Writes whole tensors as one new safetensors file and fsyncs it: byte for byte what the Python
/// package's save_file(…, metadata={"format": "pt"}) writes. The bytes go from the tensors' own
/// memory to the file; one that is contiguous is not copied. Throws IoError, and std::logic_error
/// for a view that is not whole, a name given twice or a dtype that the format lacks.
void write_safetensors(const std::filesystem::path& path, std::span<const ShardedTensorView> views);

/// An open safetensors file whose header has passed every check of the format.
class SafetensorsFile {
 public:
  /// Throws IoError, UserError for a Git LFS pointer, or CheckpointError naming the file and the
  /// rule that it breaks.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  /// Offset of the data section in the file.
  uint64_t data_start() const { return data_start_; }
  /// The entry of that name, or nullptr.
  const SafetensorsEntry* find(std::string_view name) const;

  /// Reads an entry into a contiguous tensor of the same dtype and number of elements. Throws
  /// std::logic_error for another one.
  void read_into(const SafetensorsEntry& entry, const at::Tensor& destination) const;
  /// Reads as many elements as the destination has, from element `first` of the flattened tensor
  /// on. Throws std::logic_error for another dtype or where they do not lie in it.
  void read_range_into(const SafetensorsEntry& entry, int64_t first,
                       const at::Tensor& destination) const;

 private:
  File file_;
  SafetensorsHeader header_;
  uint64_t data_start_ = 0;
  std::map<std::string_view, const SafetensorsEntry*> by_name_;
};

/// All tensors of a file by name, on the CPU: for tests and tools.
std::map<std::string, at::Tensor> read_safetensors(const std::filesystem::path& path);

}  // namespace phalanx
