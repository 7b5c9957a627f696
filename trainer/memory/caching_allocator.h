// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "trainer/memory/free_list.h"

namespace phalanx {

/// Large host tensors' memory, kept when they are gone for those that come next, but never more
/// than would fit, beside those that are there, into what was needed at a time before: a process is
/// as large as its tensors were at most. In the heap, blocks of many sizes leave holes that the
/// next ones do not fit into: a step of sharded training took half as much again. Blocks are of
/// huge pages where the kernel has them (transparent_hugepage: madvise). Thread-safe.
class CachingAllocator final : public c10::Allocator {
 public:
  /// `small` gives tensors below a mebibyte theirs, and outlives this.
  explicit CachingAllocator(c10::Allocator& small) : small_(small) {}

  /// Throws c10::OutOfMemoryError.
  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  /// The most bytes that blocks in use have had at a time.
  std::size_t most() const;

  /// The one beside LibTorch's own allocator, whatever that is when it is first asked for.
  static CachingAllocator& instance();

 private:
  using Block = FreeList::Block;

  static void release(void* memory);
  c10::DataPtr allocate_large(std::size_t bytes);
  bool has(void* memory) const;
  void keep(void* memory);
  std::byte* take(std::size_t bytes);
  std::optional<Block> take_part(std::size_t bytes);
  std::optional<Block> take_and_grow(std::size_t bytes);
  std::optional<Block> map_new(std::size_t bytes);
  void give_back(std::size_t bytes);
  bool give_all_back();

  c10::Allocator& small_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> used_;
  FreeList idle_;
  std::size_t live_ = 0;  ///< Bytes in use.
  std::size_t most_ = 0;
  std::uint64_t mappings_ = 0;  ///< So many there have been.
  bool may_grow_ = true;
};

}  // namespace phalanx
