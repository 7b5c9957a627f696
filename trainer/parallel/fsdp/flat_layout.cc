// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/flat_layout.h"

#include <algorithm>

namespace phalanx::fsdp {
namespace {

constexpr int64_t kAlignmentBytes = 16;

int64_t rounded_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const int64_t> sizes, int64_t element_size, int64_t shards)
    : shards_(shards) {
  const int64_t alignment = std::max<int64_t>(kAlignmentBytes / element_size, 1);
  int64_t end = 0;
  for (const int64_t size : sizes) {
    const int64_t begin = rounded_up(end, alignment);
    end = begin + size;
    tensors_.push_back({begin, end});
  }
  shard_size_ = rounded_up(end, alignment * shards) / shards;
}

Range FlatLayout::held(size_t i, int64_t shard) const {
  const Range place = tensors_[i];
  const int64_t begin = std::clamp(shard * shard_size_, place.begin, place.end);
  const int64_t end = std::clamp((shard + 1) * shard_size_, place.begin, place.end);
  return {begin - place.begin, end - place.begin};
}

int64_t FlatLayout::offset_in_shard(size_t i, int64_t shard) const {
  const int64_t first = shard * shard_size_;
  return std::clamp(tensors_[i].begin, first, first + shard_size_) - first;
}

std::vector<Range> FlatLayout::gaps() const {
  std::vector<Range> gaps;
  int64_t end = 0;
  for (const Range& place : tensors_) {
    if (place.begin > end) gaps.push_back({end, place.begin});
    end = place.end;
  }
  if (size() > end) gaps.push_back({end, size()});
  return gaps;
}

}  // namespace phalanx::fsdp
