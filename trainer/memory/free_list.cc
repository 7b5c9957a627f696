// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/free_list.h"

#include <iterator>

namespace phalanx {

void FreeList::add(Block block) {
  bytes_ += block.bytes;
  const auto joins = [](const Block& left, const Block& right) {
    return left.end() == right.begin && left.mapping == right.mapping;
  };
  auto next = by_address_.lower_bound(block.begin);
  if (next != by_address_.end() && joins(block, next->second)) {
    bytes_ -= block.bytes;
    block.bytes += take(next).bytes;
    bytes_ += block.bytes;
    next = by_address_.lower_bound(block.begin);
  }
  if (next != by_address_.begin() && joins(std::prev(next)->second, block)) {
    bytes_ -= block.bytes;
    Block before = take(std::prev(next));
    before.bytes += block.bytes;
    block = before;
    bytes_ += block.bytes;
  }
  by_address_.emplace(block.begin, block);
  by_size_.emplace(block.bytes, block.begin);
}

std::optional<FreeList::Block> FreeList::take_at_least(std::size_t bytes) {
  const auto found = by_size_.lower_bound({bytes, nullptr});
  if (found == by_size_.end()) return std::nullopt;
  return take(by_address_.find(found->second));
}

std::optional<FreeList::Block> FreeList::take_largest() {
  if (by_size_.empty()) return std::nullopt;
  return take(by_address_.find(std::prev(by_size_.end())->second));
}

FreeList::Block FreeList::take(ByAddress::iterator block) {
  const Block taken = block->second;
  by_size_.erase({taken.bytes, taken.begin});
  by_address_.erase(block);
  bytes_ -= taken.bytes;
  return taken;
}

}  // namespace phalanx
