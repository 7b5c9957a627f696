// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

/// Between C++ values and trees: the part of schema.h that depends on a member's type.
namespace phalanx::config {

template <class T>
class Schema;
template <class T>
const Declaration& declaration();

/// How a custom type is written in a config; specialise it beside the type.
///   static Type type();                                      what may be written
///   static void from_node(T& value, const Type&, const Node&);   a resolved value as T
///   static Node to_node(const T& value, const Type&);            T as a value that `type` allows
template <class T>
struct Binding;

namespace detail {

template <class T>
concept Bound = requires {
  Binding<T>::type();
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

template <class T>
concept Described = requires(Schema<T>& schema) {
  T::describe(schema);
};

/// What an optional, list or map holds in the end.
template <class T>
struct LeafOf {
  using type = T;
};
template <class T>
struct LeafOf<std::optional<T>> : LeafOf<T> {};
template <class T>
struct LeafOf<std::vector<T>> : LeafOf<T> {};
template <class T>
struct LeafOf<std::map<std::string, T>> : LeafOf<T> {};
template <class T>
using LeafType = typename LeafOf<T>::type;

// The compiled base: a resolved scalar as a value. Each throws std::logic_error for a node of
// another type, which only an unresolved tree can hold.
bool to_bool(const Node& node);
std::int64_t to_integer(const Node& node);
std::chrono::milliseconds to_duration(const Node& node);
Node from_duration(std::chrono::milliseconds value);
double to_real(const Node& node);
const std::string& to_text(const Node& node);
std::int64_t to_choice(const Node& node, const Type& type);
Node from_choice(std::int64_t value, const Type& type);
[[noreturn]] void throw_not_a(const char* kind, const Node& node);

template <class T>
inline constexpr bool unsupported = false;

/// The run-time form of a member's type.
template <class T>
Type type_of() {
  Type type;
  if constexpr (Bound<T>) {
    type = Binding<T>::type();
  } else if constexpr (is_optional<T>) {
    static_assert(!is_optional<typename T::value_type>, "an optional of an optional has no YAML");
    type = type_of<typename T::value_type>();
    type.nullable = true;
  } else if constexpr (is_vector<T>) {
    type.kind = Type::Kind::list;
    type.element.push_back(type_of<typename T::value_type>());
  } else if constexpr (is_map<T>) {
    type.kind = Type::Kind::map;
    type.element.push_back(type_of<typename T::mapped_type>());
  } else if constexpr (std::is_same_v<T, bool>) {
    type.kind = Type::Kind::boolean;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    type.kind = Type::Kind::integer;
  } else if constexpr (std::is_same_v<T, double>) {
    type.kind = Type::Kind::real;
  } else if constexpr (std::is_same_v<T, std::string>) {
    type.kind = Type::Kind::string;
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    type.kind = Type::Kind::path;
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    type.kind = Type::Kind::duration;
    type.range.low = 0;
  } else if constexpr (std::is_enum_v<T>) {
    type.kind = Type::Kind::enumeration;
  } else if constexpr (Described<T>) {
    type.kind = Type::Kind::section;
    type.section = &declaration<T>();
  } else {
    static_assert(unsupported<T>,
                  "a config member is bool, int64_t, double, std::string, an enum, a path, "
                  "std::chrono::milliseconds, a struct with describe, a type with a Binding, or a "
                  "std::optional, std::vector or std::map<std::string, ...> of one of these");
  }
  return type;
}

template <class T>
T read_described(const Node& section) {
  T value{};
  declaration<T>().load(&value, section);
  return value;
}

/// Sets a member from a resolved value.
template <class T>
void from_node(T& value, const Type& type, const Node& node) {
  if constexpr (Bound<T>) {
    Binding<T>::from_node(value, type, node);
  } else if constexpr (is_optional<T>) {
    if (type.is_no_value(node)) {
      value.reset();
    } else {
      from_node(value.emplace(), type, node);
    }
  } else if constexpr (is_vector<T>) {
    if (!node.is_list()) throw_not_a("list", node);
    value.clear();
    for (const Node& item : node.items) {
      typename T::value_type element{};
      from_node(element, type.element.front(), item);
      value.push_back(std::move(element));
    }
  } else if constexpr (is_map<T>) {
    if (!node.is_map()) throw_not_a("map", node);
    value.clear();
    for (const Entry& entry : node.entries) {
      from_node(value[entry.key], type.element.front(), entry.value);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    value = to_bool(node);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    value = to_integer(node);
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    value = to_duration(node);
  } else if constexpr (std::is_same_v<T, double>) {
    value = to_real(node);
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(to_choice(node, type));
  } else if constexpr (Described<T>) {
    value = read_described<T>(node);
  } else {
    value = to_text(node);
  }
}

/// The tree of a member's value.
template <class T>
Node to_node(const T& value, const Type& type) {
  if constexpr (Bound<T>) {
    return Binding<T>::to_node(value, type);
  } else if constexpr (is_optional<T>) {
    return value ? to_node(*value, type) : type.no_value();
  } else if constexpr (is_vector<T>) {
    Node node = Node::list();
    for (const typename T::value_type& element : value) {
      node.items.push_back(to_node(element, type.element.front()));
    }
    return node;
  } else if constexpr (is_map<T>) {
    Node node = Node::map();
    for (const auto& [key, element] : value) {
      node.set(key, to_node(element, type.element.front()));
    }
    return node;
  } else if constexpr (std::is_same_v<T, bool>) {
    return Node::boolean(value);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return Node::integer(value);
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    return from_duration(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return Node::real(value);
  } else if constexpr (std::is_enum_v<T>) {
    return from_choice(static_cast<std::int64_t>(value), type);
  } else if constexpr (Described<T>) {
    return declaration<T>().store(&value);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return Node::string(value.string());
  } else {
    return Node::string(value);
  }
}

}  // namespace detail
}  // namespace phalanx::config
