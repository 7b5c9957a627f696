// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/differences.h"

#include "trainer/config/syntax/print.h"

namespace phalanx::config {

namespace {

std::string printed(const Node* node) { return node == nullptr ? "(absent)" : print_inline(*node); }

void compare(const Node* a, const Node* b, const std::string& path,
             std::vector<Difference>& result) {
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
