// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace phalanx {

/// Address ranges that lie idle: neighbours that were cut from one mapping become one again. Knows
/// nothing of the memory behind them.
class FreeList {
 public:
  struct Block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    std::uint64_t mapping = 0;  ///< Number of the mapping that it was cut from.

    std::byte* end() const { return begin + bytes; }
  };

  void add(Block block);
  /// Takes the smallest with so many bytes or more out.
  std::optional<Block> take_at_least(std::size_t bytes);
  /// Takes the largest out.
  std::optional<Block> take_largest();

  bool empty() const { return by_size_.empty(); }
  std::size_t bytes() const { return bytes_; }

 private:
  using ByAddress = std::map<std::byte*, Block>;

  Block take(ByAddress::iterator block);

  ByAddress by_address_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  std::size_t bytes_ = 0;
};

}  // namespace phalanx
