// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#include "trainer/config/tree/binding.h"
#include "trainer/config/tree/field_builder.h"

/// What the compiler says of a member whose type a config cannot hold: the line that declares the
/// member, and the type to use in place of its own, once. A static_assert would name a line of
/// schema.h, and not the member.
namespace phalanx::config {

namespace detail {

/// What a member's type is to be replaced by, or what it lacks.
enum class Instead { nothing, real, integer, text, vector, array_header, describe, other };

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t count>
inline constexpr bool is_std_array<std::array<T, count>> = true;

template <class T>
concept Supported = Bound<T> || Described<T> || std::is_enum_v<T> || std::same_as<T, bool> ||
    std::same_as<T, std::int64_t> || std::same_as<T, double> || std::same_as<T, std::string> ||
    std::same_as<T, std::filesystem::path> || std::same_as<T, std::chrono::milliseconds>;

/// What to write in place of a type that a list, map or optional holds.
template <class Leaf>
constexpr Instead instead_of() {
  if constexpr (Supported<Leaf>) {
    return Instead::nothing;
  } else if constexpr (std::same_as<Leaf, char> || std::is_convertible_v<Leaf, std::string_view>) {
    return Instead::text;
  } else if constexpr (std::floating_point<Leaf>) {
    return Instead::real;
  } else if constexpr (std::integral<Leaf>) {
    return Instead::integer;
  } else if constexpr (is_std_array<Leaf>) {
    return Instead::array_header;
  } else if constexpr (std::ranges::range<Leaf>) {
    return Instead::vector;
  } else if constexpr (std::is_class_v<Leaf> && std::is_aggregate_v<Leaf>) {
    return Instead::describe;
  } else {
    return Instead::other;
  }
}

template <class Member, Instead instead>
concept Takes = instead_of<LeafType<Member>>()
== instead;

// What Schema<T>::field would give: the names are the advice. They have a builder's functions, so
// that one error is all.
struct UseDouble : FieldBuilder<double> {};
struct UseStdInt64 : FieldBuilder<std::int64_t> {};
struct UseStdString : FieldBuilder<std::string> {};
struct UseStdVectorOrStdMapOfStdString : FieldBuilder<double> {};
struct IncludeTrainerConfigTreeArray : FieldBuilder<double> {};
struct DeclareStaticDescribeInTheMembersType : FieldBuilder<std::string> {};
struct UseATypeThatSchemaFieldNames : FieldBuilder<double> {};

}  // namespace detail
}  // namespace phalanx::config
