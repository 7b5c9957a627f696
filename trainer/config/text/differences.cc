// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/differences.h"

#include <algorithm>

#include "trainer/config/syntax/print.h"

namespace phalanx::config {

namespace {

std::string printed(const Node* node) { return node == nullptr ? "(absent)" : print_inline(*node); }

// Lists of sections, as a mixture's sources, are compared element by element; one of plain values
// is short, and says more as a whole.
bool holds_maps(const Node* list) {
  return list != nullptr && list->is_list() && !list->items.empty() &&
         std::ranges::all_of(list->items, &Node::is_map);
}

const Node* item_of(const Node& list, std::size_t index) {
  return index < list.items.size() ? &list.items[index] : nullptr;
}

void compare(const Node* a, const Node* b, const std::string& path,
             std::vector<Difference>& result) {
  if (holds_maps(a) && holds_maps(b)) {
    for (std::size_t i = 0; i < std::max(a->items.size(), b->items.size()); ++i) {
      compare(item_of(*a, i), item_of(*b, i), path + "[" + std::to_string(i) + "]", result);
    }
    return;
  }
  const bool both_maps = a != nullptr && b != nullptr && a->is_map() && b->is_map();
  if (!both_maps) {
    if (a == nullptr || b == nullptr || !same_value(*a, *b)) {
      result.push_back({path, printed(a), printed(b)});
    }
    return;
  }
  for (const Entry& entry : a->entries) {
    compare(&entry.value, b->find(entry.key), join_path(path, entry.key), result);
  }
  for (const Entry& entry : b->entries) {
    if (a->find(entry.key) == nullptr) {
      compare(nullptr, &entry.value, join_path(path, entry.key), result);
    }
  }
}

}  // namespace

std::vector<Difference> differences(const Node& a, const Node& b) {
  std::vector<Difference> result;
  compare(&a, &b, "", result);
  return result;
}

}  // namespace phalanx::config
