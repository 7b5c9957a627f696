// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace phalanx::fsdp {

/// Elements [begin, end) of something flat.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Where the tensors of a unit lie in one flat buffer, and how that is cut into equal shards: one
/// after the other in their order, each at a multiple of 16 bytes, padded to whole shards
/// (torch/distributed/fsdp/_flat_param.py).
class FlatLayout {
 public:
  /// Tensors of so many elements, of `element_size` bytes each.
  FlatLayout(std::span<const int64_t> sizes, int64_t element_size, int64_t shards);

  int64_t size() const { return shard_size_ * shards_; }
  int64_t shard_size() const { return shard_size_; }
  int64_t shards() const { return shards_; }
  size_t tensors() const { return tensors_.size(); }
  /// Where tensor `i` lies in the buffer.
  Range place(size_t i) const { return tensors_[i]; }
  /// The elements of tensor `i` that are in shard `shard`; an empty range within the tensor where
  /// there are none.
  Range held(size_t i, int64_t shard) const;
  /// Where `held` begins in the shard.
  int64_t offset_in_shard(size_t i, int64_t shard) const;
  /// The parts of the buffer that no tensor lies in.
  std::vector<Range> gaps() const;

 private:
  std::vector<Range> tensors_;
  int64_t shards_;
  int64_t shard_size_ = 0;
};

}  // namespace phalanx::fsdp
