// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/api/module_hook.h"
#include "trainer/api/tensors_in.h"
#include "trainer/api/units.h"

namespace phalanx {

/// The holder that `UNIT` and `HOOKED` declare: as torch::nn::ModuleHolder, but the call operator
/// runs the module's hooks around the author's plain `forward`, which C++ modules do not have
/// (pytorch issue 25888).
template <class Impl>
class HookedHolder : public torch::nn::ModuleHolder<Impl> {
  static_assert(std::is_base_of_v<HookedModule, Impl>,
                "the Impl of a UNIT derives from phalanx::Unit, that of HOOKED from "
                "phalanx::HookedModule");

 public:
  using torch::nn::ModuleHolder<Impl>::ModuleHolder;

  /// Calls the author's forward with the hooks around it. Hooks see every tensor in the arguments
  /// and in the result; what they could not see does not compile (kIsVisible).
  template <class... Args>
  auto operator()(Args... args) {
    using Result = std::decay_t<decltype(std::declval<Impl&>().forward(std::move(args)...))>;
    static_assert((kIsVisible<Args> && ...),
                  "hooks cannot see the tensors of an argument: pass tensors, optional tensors, "
                  "vectors and tuples of them, or a struct with tensors() (tensors_in.h)");
    static_assert(kIsVisible<Result>,
                  "hooks cannot see the tensors of the result: return tensors, optional tensors, "
                  "vectors and tuples of them, or a struct with tensors() (tensors_in.h)");
    try {
      if (!this->impl_->has_hooks()) return Result(this->impl_->forward(std::move(args)...));
      return with_hooks<Result>(std::tuple<Args...>(std::move(args)...));
    } catch (...) {  // For the message: what comes here costs nothing until it does.
      this->impl_->note_failure();
      throw;
    }
  }

 private:
  template <class Result, class Arguments>
  Result with_hooks(Arguments arguments) {
    std::vector<at::Tensor> inputs = take_tensors(arguments);
    // Holds the result without its tensors, which go through the hooks.
    const auto result = std::make_shared<std::optional<Result>>();
    std::vector<at::Tensor> outputs =
        this->impl_->run(std::move(inputs), [impl = this->impl_, arguments = std::move(arguments),
                                             result](std::vector<at::Tensor> tensors) {
          Arguments all = arguments;
          put_tensors(all, std::move(tensors));
          result->emplace(std::apply(
              [&](auto&... argument) { return impl->forward(std::move(argument)...); }, all));
          return take_tensors(**result);
        });
    put_tensors(**result, std::move(outputs));
    return std::move(**result);
  }
};

}  // namespace phalanx

/// Declares the holder `Name` of `NameImpl`, in place of TORCH_MODULE(Name), for a module with
/// hooks that is not sharded for itself.
/// `class AttentionImpl : public torch::nn::Module, public phalanx::HookedModule {…};
/// HOOKED(Attention);`
#define HOOKED(Name)                                         \
  class Name : public ::phalanx::HookedHolder<Name##Impl> {  \
   public:                                                   \
    using ::phalanx::HookedHolder<Name##Impl>::HookedHolder; \
    using Impl [[maybe_unused]] = Name##Impl;                \
  }

/// The same for a unit, which is sharded.
/// `class BlockImpl : public torch::nn::Module, public phalanx::Unit {…}; UNIT(Block);`
#define UNIT(Name)                                                     \
  static_assert(std::is_base_of_v<::phalanx::Unit, Name##Impl>,        \
                "the Impl of a UNIT derives from phalanx::Unit, too"); \
  HOOKED(Name)
