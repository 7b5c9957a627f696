// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/byte_trie.h"

#include <algorithm>

namespace phalanx {
namespace {

// Entries that have the same bytes up to `depth`, and the node that these lead to.
struct Group {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t depth = 0;
  uint32_t node = 0;
};

}  // namespace

// Level by level, so that the children of a node lie side by side. Node 0 stands for no bytes.
ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  nodes_.emplace_back();
  std::vector<Group> groups{{.begin = 0, .end = entries.size(), .depth = 0, .node = 0}};
  for (std::size_t next = 0; next < groups.size(); ++next) {
    const Group group = groups[next];
    nodes_[group.node].children_begin = static_cast<uint32_t>(nodes_.size());
    for (std::size_t i = group.begin; i < group.end;) {
      const std::string_view text = entries[i].first;
      if (text.size() == group.depth) {
        nodes_[group.node].number = entries[i++].second;
        continue;
      }
      const char byte = text[group.depth];
      std::size_t end = i;
      while (end < group.end && entries[end].first[group.depth] == byte) ++end;
      groups.push_back({.begin = i,
                        .end = end,
                        .depth = group.depth + 1,
                        .node = static_cast<uint32_t>(nodes_.size())});
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      i = end;
    }
    nodes_[group.node].children_end = static_cast<uint32_t>(nodes_.size());
  }
  for (int byte = 0; byte < 256; ++byte)
    roots_[byte] = child_of(0, static_cast<unsigned char>(byte));
}

uint32_t ByteTrie::child_of(uint32_t node, unsigned char byte) const {
  const auto begin = nodes_.begin() + nodes_[node].children_begin;
  const auto end = nodes_.begin() + nodes_[node].children_end;
  const auto found = std::lower_bound(
      begin, end, byte, [](const Node& child, unsigned char b) { return child.byte < b; });
  if (found == end || found->byte != byte) return kNone;
  return static_cast<uint32_t>(found - nodes_.begin());
}

}  // namespace phalanx
