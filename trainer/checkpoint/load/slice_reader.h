// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/contents.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/file.h"

namespace phalanx {

/// Reads ranges of a checkpoint's tensors, from whatever slices they stand in, and compares every
/// chunk that it reads with its checksum, if there are checksums (Contents::chunk_bytes is not
/// 0). The contents are sound (manifest_rules.h).
class SliceReader {
 public:
  /// `progress`, where given, counts what is read.
  SliceReader(std::filesystem::path checkpoint, const Contents& contents,
              ByteProgress* progress = nullptr)
      : folder_(std::move(checkpoint)), contents_(contents), progress_(progress) {}

  /// As many elements as `destination` has, from `begin` of the flattened tensor on. It is of the
  /// tensor's dtype (std::logic_error). Throws CheckpointError naming file, bytes and tensor where
  /// they are damaged, or IoError.
  void read(const ManifestTensor& tensor, int64_t begin, const at::Tensor& destination);

  /// The same of a part of the tensor, which `destination` has the elements of.
  void read(const ManifestTensor& tensor, const TensorPart& part, const at::Tensor& destination);

  /// Compares a slice with its checksums, as read.
  void verify(const ManifestTensor& tensor, const ManifestSlice& slice);

  /// So many bytes of tensors have been read from files.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read_range(const ManifestTensor& tensor, int64_t begin, const at::Tensor& host);
  void read_boxes(const ManifestTensor& tensor, const BoxRange& wanted, const at::Tensor& host);
  int64_t read_shared(const ManifestTensor& tensor, const ManifestSlice& slice,
                      const BoxRange& stored, const BoxRange& wanted, const at::Tensor& host);
  void read_slice(const ManifestTensor& tensor, const ManifestSlice& slice, uint64_t begin,
                  std::span<std::byte> destination);
  void read_chunks(const ManifestTensor& tensor, const ManifestSlice& slice, uint64_t first,
                   std::span<std::byte> destination);
  void read_bytes(const ManifestSlice& slice, uint64_t offset, std::span<std::byte> destination);
  const File& file(const std::string& name);

  std::filesystem::path folder_;
  const Contents& contents_;
  std::map<std::string, File> files_;
  std::vector<std::byte> buffer_;
  uint64_t bytes_read_ = 0;
  ByteProgress* progress_;
};

}  // namespace phalanx
