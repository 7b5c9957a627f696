// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/part_names.h"
#include "trainer/api/tensor_box.h"

namespace phalanx {

/// A contiguous range of the elements of a tensor, or of a box of it, flattened in row-major order,
/// and where its bytes stand.
struct ManifestSlice {
  int64_t begin = 0;                ///< First element.
  int64_t end = 0;                  ///< One past the last.
  std::string file;                 ///< A name in the checkpoint's folder.
  uint64_t offset = 0;              ///< The place of the first byte, counted from the file's start.
  std::vector<uint64_t> checksums;  ///< One for each Contents::chunk_bytes of its bytes.
  std::optional<TensorBox> box = std::nullopt;  ///< Nothing: the whole tensor.

  TensorPart part() const { return {.box = box, .begin = begin, .end = end}; }
};

/// A global tensor, and the slices that make it up without gap or overlap: in order, unless one of
/// them is of a box.
struct ManifestTensor {
  std::string part;
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::vector<ManifestSlice> slices;  ///< None: it has no elements.

  /// Whether one of the slices is of a box.
  bool has_boxes() const;
};

/// What stands in a safetensors file as a tensor of this name: a box of `tensor`, or all of it.
/// "name[0:4,2:5]" are its indices 0 to 3 and 2 to 4.
std::string stored_name(const std::string& tensor, const std::optional<TensorBox>& box);

/// A file of a checkpoint. What follows its head are slices, without gap or overlap.
struct ManifestFile {
  uint64_t size = 0;           ///< Bytes.
  uint64_t head_bytes = 0;     ///< Before the first slice: of a text file, all.
  uint64_t head_checksum = 0;  ///< The checksum of these.
};

/// The tensors and files of a folder: of a checkpoint, or of a model that others wrote.
struct Contents {
  static constexpr uint64_t kMinChunkBytes = uint64_t{64} << 10;

  /// What one checksum of a slice is of; 0: there are none, as in a folder that others wrote.
  uint64_t chunk_bytes = kMinChunkBytes;
  std::map<std::string, ManifestFile> files;  ///< By name in the folder.
  std::vector<ManifestTensor> tensors;
};

}  // namespace phalanx
