#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace phalanx {

class Unit;

/// Runs around a unit's forward: what sharding, activation checkpointing and profiling attach.
class UnitHook {
 public:
  virtual ~UnitHook() = default;

  /// Before the author's forward; may replace the tensors that are passed in.
  virtual void before_forward(Unit& unit, std::vector<at::Tensor*>& inputs) = 0;
  /// After it, in reverse order of attachment; may replace the result.
  virtual void after_forward(Unit& unit, at::Tensor& output) = 0;
};

/// The state that makes a module a unit: the part of a model that is sharded, recomputed or
/// profiled together. Declared by `UNIT(Block)`; authors write nothing else.
class Unit {
 public:
  virtual ~Unit() = default;

  void attach(std::shared_ptr<UnitHook> hook) { hooks_.push_back(std::move(hook)); }

  void before_forward(std::vector<at::Tensor*>& inputs) {
    for (const auto& hook : hooks_) hook->before_forward(*this, inputs);
  }
  void after_forward(at::Tensor& output) {
    for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) {
      (*hook)->after_forward(*this, output);
    }
  }
  bool has_hooks() const { return !hooks_.empty(); }

 private:
  std::vector<std::shared_ptr<UnitHook>> hooks_;
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
    std::vector<at::Tensor*> inputs{&input};
    (collect(inputs, args), ...);
    impl.before_forward(inputs);
    at::Tensor output = impl.forward(std::move(input), std::move(args)...);
    impl.after_forward(output);
    return output;
  }

 private:
  template <class Arg>
  static void collect(std::vector<at::Tensor*>& inputs, Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) inputs.push_back(&arg);
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

}  // namespace phalanx

/// Declares the holder `Name` of `NameImpl`, in place of TORCH_MODULE(Name).
/// `class BlockImpl : public torch::nn::Module, public phalanx::Unit {…}; UNIT(Block);`
#define UNIT(Name)                                        \
  class Name : public ::phalanx::UnitHolder<Name##Impl> { \
   public:                                                \
    using ::phalanx::UnitHolder<Name##Impl>::UnitHolder;  \
    using Impl [[maybe_unused]] = Name##Impl;             \
  }
