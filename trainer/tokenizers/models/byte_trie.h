// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace phalanx {

/// Texts and a number of each, to find those that a text begins with. Never changes: thread-safe.
class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, int32_t>;

  /// Empty texts are left out. Of equal texts the last counts.
  explicit ByteTrie(std::vector<Entry> entries = {});

  /// Calls take(length, number) for each text that `text` begins with, the shortest first.
  template <typename Take>
  void find_prefixes(std::string_view text, const Take& take) const {
    uint32_t node = text.empty() ? kNone : roots_[static_cast<unsigned char>(text[0])];
    for (std::size_t length = 1; node != kNone; ++length) {
      if (nodes_[node].number != kNoNumber) take(length, nodes_[node].number);
      node =
          length == text.size() ? kNone : child_of(node, static_cast<unsigned char>(text[length]));
    }
  }

  /// Whether a text may begin with this byte.
  bool has_root(unsigned char byte) const { return roots_[byte] != kNone; }

 private:
  struct Node {
    int32_t number = kNoNumber;
    uint32_t children_begin = 0;  // Among the nodes, in the order of their bytes.
    uint32_t children_end = 0;
    unsigned char byte = 0;  // That leads here.
  };

  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int32_t kNoNumber = INT32_MIN;

  uint32_t child_of(uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> roots_{};
};

}  // namespace phalanx
