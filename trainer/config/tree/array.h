// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "trainer/config/tree/schema.h"

namespace phalanx::config {

/// A list of so many elements: std::array<double, 2> is written [0.9, 0.999].
template <class T, std::size_t count>
struct Binding<std::array<T, count>> {
  static Type type() {
    Type type;
    type.kind = Type::Kind::list;
    type.size = count;
    type.element.push_back(detail::type_of<T>());
    return type;
  }

  static void from_node(std::array<T, count>& value, const Type& type, const Node& node) {
    for (std::size_t i = 0; i < count; ++i) {
      detail::from_node(value[i], type.element.front(), node.items.at(i));
    }
  }

  static Node to_node(const std::array<T, count>& value, const Type& type) {
    Node node = Node::list();
    for (const T& element : value) {
      node.items.push_back(detail::to_node(element, type.element.front()));
    }
    return node;
  }
};

/// Bounds and choices of an array apply to its elements.
template <class T, std::size_t count>
struct detail::LeafOf<std::array<T, count>> : detail::LeafOf<T> {};

}  // namespace phalanx::config
