#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace phalanx {

class Unit;

/// A unit's forward with all but its tensors bound: it takes those, in their order, and gives the
/// result. May be kept, and called again.
using UnitForward = std::function<at::Tensor(std::vector<at::Tensor> inputs)>;

/// Stands around a unit's forward: what sharding, activation checkpointing and profiling attach.
class UnitHook {
 public:
  virtual ~UnitHook() = default;

  /// Calls `forward` with the inputs, or with others in their place, and gives its result.
  virtual at::Tensor around(Unit& unit, std::vector<at::Tensor> inputs,
                            const UnitForward& forward) = 0;
};

/// Where a new hook stands: around all that are there, or within them.
enum class HookPlace { outermost, innermost };

/// The state that makes a module a unit: the part of a model that is sharded, recomputed or
/// profiled together. Declared by `UNIT(Block)`; authors write nothing else.
class Unit {
 public:
  virtual ~Unit() = default;

  void attach(std::shared_ptr<UnitHook> hook, HookPlace place = HookPlace::innermost);
  bool has_hooks() const { return !hooks_.empty(); }

  /// The author's `forward` with the hooks around it.
  at::Tensor run(std::vector<at::Tensor> inputs, UnitForward forward);

 private:
  std::vector<std::shared_ptr<UnitHook>> hooks_;  ///< The outermost first.
};

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

/// A unit by its dotted name in the model, for example "h.3".
struct NamedUnit {
  std::string name;
  Unit* unit;
  torch::nn::Module* module;
};

/// The units of a model in the order of registration, the root left out; one that is registered in
/// several places appears once, under its first name.
std::vector<NamedUnit> units(torch::nn::Module& root);

/// "Block" of "phalanx::gpt2::BlockImpl".
std::string class_name(const torch::nn::Module& module);

/// Those whose dotted name or class matches one of the patterns (`*`, `?`), in their order. Throws
/// UserError for a pattern that matches none, naming the config's `field` and what there is.
std::vector<NamedUnit> units_by_name(const std::vector<NamedUnit>& units,
                                     const std::vector<std::string>& patterns,
                                     std::string_view field);

/// Whether this thread runs a unit's forward once more, for the activations that its backward
/// needs: what counts or plans by forward passes looks away.
bool is_recomputing();

/// Makes it so, for the length of a scope.
class Recomputation {
 public:
  Recomputation();
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;
  ~Recomputation();

 private:
  bool before_;
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
