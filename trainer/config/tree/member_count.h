// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace phalanx::config {

namespace detail {

/// Converts to a member of any type but the aggregate itself.
template <class Aggregate>
struct AnyMember {
  template <class Member>
  requires(!std::is_same_v<Member, Aggregate>) operator Member() const;
};

/// Tries one more member at a time. A std::optional takes an AnyMember in two ways, its own
/// conversion and optional's constructor, which is ambiguous: std::nullopt probes those.
template <class Aggregate, class... Probes>
constexpr std::size_t count_members() {
  if constexpr (requires { Aggregate{std::declval<Probes>()..., AnyMember<Aggregate>{}}; }) {
    return count_members<Aggregate, Probes..., AnyMember<Aggregate>>();
  } else if constexpr (requires { Aggregate{std::declval<Probes>()..., std::nullopt}; }) {
    return count_members<Aggregate, Probes..., std::nullopt_t>();
  } else {
    return sizeof...(Probes);
  }
}

}  // namespace detail

/// Number of members of an aggregate (no constructors, no arrays in C's manner).
template <class Aggregate>
constexpr std::size_t member_count() {
  static_assert(std::is_aggregate_v<Aggregate>, "a config struct has members and no constructors");
  return detail::count_members<Aggregate>();
}

}  // namespace phalanx::config
