// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/api/unit_hook.h"

namespace phalanx {

/// The holder that `UNIT` declares: as torch::nn::ModuleHolder, but the call operator runs the
/// unit's hooks around the author's plain `forward`, which C++ modules do not have
/// (pytorch issue 25888).
template <class Impl>
class UnitHolder : public torch::nn::ModuleHolder<Impl> {
  static_assert(std::is_base_of_v<Unit, Impl>, "a UNIT's Impl derives from phalanx::Unit too");

 public:
  using torch::nn::ModuleHolder<Impl>::ModuleHolder;

  /// Calls the author's forward with the hooks around it. Tensors in, one tensor out.
  template <class... Args>
  at::Tensor operator()(at::Tensor input, Args... args) {
    Impl& impl = *this->impl_;
    if (!impl.has_hooks()) return impl.forward(std::move(input), std::move(args)...);
    std::vector<at::Tensor> inputs{std::move(input)};
    (take_tensor(inputs, args), ...);
    return impl.run(std::move(inputs), [impl = this->impl_,
                                        ... rest = std::move(args)](std::vector<at::Tensor> in) {
      [[maybe_unused]] std::size_t next = 1;
      // Braces: from left to right.
      std::tuple<Args...> all{put_tensor(in, next, rest)...};
      return std::apply(
          [&](auto&... arg) { return impl->forward(std::move(in.front()), std::move(arg)...); },
          all);
    });
  }

 private:
  template <class Arg>
  static void take_tensor(std::vector<at::Tensor>& inputs, Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) inputs.push_back(std::move(arg));
  }
  template <class Arg>
  static Arg put_tensor(std::vector<at::Tensor>& inputs, std::size_t& next, const Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) {
      return std::move(inputs[next++]);
    } else {
      return arg;
    }
  }
};

}  // namespace phalanx

/// Declares the holder `Name` of `NameImpl`, in place of TORCH_MODULE(Name).
/// `class BlockImpl : public torch::nn::Module, public phalanx::Unit {…}; UNIT(Block);`
#define UNIT(Name)                                        \
  class Name : public ::phalanx::UnitHolder<Name##Impl> { \
   public:                                                \
    using ::phalanx::UnitHolder<Name##Impl>::UnitHolder;  \
    using Impl [[maybe_unused]] = Name##Impl;             \
  }
