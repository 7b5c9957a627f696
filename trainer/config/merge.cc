#include "trainer/config/merge.h"

#include <utility>

namespace phalanx::config {

namespace {

/// A section's short form: the name of a class.
bool is_name(const Node& node) {
  return node.is_scalar() && !node.is_missing() && !node.text.starts_with("${") &&
         core_type(node) == ScalarType::string;
}

}  // namespace

void merge(Node& target, Node value) {
  if (is_name(target) && value.is_map()) {
    Node name = std::exchange(target, Node::map());
    target.origin = name.origin;
    target.set("name", std::move(name));
  }
  if (target.is_map() && value.is_map()) {
    for (Entry& entry : value.entries) {
      if (Node* old = target.find(entry.key)) {
        merge(*old, std::move(entry.value));
      } else {
        target.entries.push_back(std::move(entry));
      }
    }
  } else if (target.is_map() && value.is_scalar() && !value.text.starts_with("${")) {
    target.set("name", std::move(value));
  } else {
    target = std::move(value);
  }
}

}  // namespace phalanx::config
