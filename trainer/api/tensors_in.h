// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace phalanx {

/// Values without tensors, which hooks need not see. Specialise it for a struct of such values; not
/// for a pointer or a reference, behind which tensors could stay unseen.
template <class T>
inline constexpr bool kHoldsNoTensors =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::nullopt_t> ||
    std::is_same_v<T, std::string> || std::is_same_v<T, c10::Scalar> ||
    std::is_same_v<T, c10::Device>;

/// A struct that shows its tensors: `auto tensors() { return std::tie(keys, values); }` names the
/// members that hold some.
template <class T>
concept ShowsItsTensors = requires(T& value) {
  value.tensors();
};

namespace internal {

template <class T>
struct Parts {
  static constexpr bool kVisible = kHoldsNoTensors<T> || ShowsItsTensors<T>;
  static void each([[maybe_unused]] T& value, [[maybe_unused]] auto& action) {
    if constexpr (ShowsItsTensors<T>) {
      auto members = value.tensors();
      std::apply(
          [&](auto&... member) {
            (Parts<std::decay_t<decltype(member)>>::each(member, action), ...);
          },
          members);
    }
  }
};

template <>
struct Parts<at::Tensor> {
  static constexpr bool kVisible = true;
  static void each(at::Tensor& value, auto& action) { action(value); }
};

template <class T>
struct Parts<std::optional<T>> {
  static constexpr bool kVisible = Parts<T>::kVisible;
  static void each(std::optional<T>& value, auto& action) {
    if (value) Parts<T>::each(*value, action);
  }
};

template <class Range, class T>
struct PartsOfRange {
  static constexpr bool kVisible = Parts<T>::kVisible;
  static void each([[maybe_unused]] Range& range, [[maybe_unused]] auto& action) {
    // std::vector<bool> has no bools to refer to.
    if constexpr (!kHoldsNoTensors<T>) {
      for (T& element : range) Parts<T>::each(element, action);
    }
  }
};
template <class T>
struct Parts<std::vector<T>> : PartsOfRange<std::vector<T>, T> {};
template <class T, std::size_t n>
struct Parts<std::array<T, n>> : PartsOfRange<std::array<T, n>, T> {};

template <class Tuple, class... T>
struct PartsOfTuple {
  static constexpr bool kVisible = (Parts<T>::kVisible && ...);
  static void each(Tuple& tuple, [[maybe_unused]] auto& action) {
    std::apply([&](T&... element) { (Parts<T>::each(element, action), ...); }, tuple);
  }
};
template <class... T>
struct Parts<std::tuple<T...>> : PartsOfTuple<std::tuple<T...>, T...> {};
template <class A, class B>
struct Parts<std::pair<A, B>> : PartsOfTuple<std::pair<A, B>, A, B> {};

}  // namespace internal

/// What a module with hooks may take and return: tensors; optional values, vectors, arrays, pairs
/// and tuples of visible values; structs that show their tensors; and values without tensors.
template <class T>
inline constexpr bool kIsVisible = internal::Parts<T>::kVisible;

/// Moves the tensors out of a value, from left to right; the rest of it stays.
template <class T>
std::vector<at::Tensor> take_tensors(T& value) {
  std::vector<at::Tensor> taken;
  auto take = [&](at::Tensor& tensor) { taken.push_back(std::exchange(tensor, at::Tensor())); };
  internal::Parts<T>::each(value, take);
  return taken;
}

/// Moves as many tensors into it again. Throws std::logic_error for another number.
template <class T>
void put_tensors(T& value, std::vector<at::Tensor> tensors) {
  std::size_t next = 0;
  auto put = [&](at::Tensor& tensor) {
    if (next < tensors.size()) tensor = std::move(tensors[next]);
    ++next;
  };
  internal::Parts<T>::each(value, put);
  if (next != tensors.size()) {
    throw std::logic_error(
        fmt::format("a hook gave {} tensors in place of {}", tensors.size(), next));
  }
}

}  // namespace phalanx
