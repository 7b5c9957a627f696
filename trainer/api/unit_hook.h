// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace torch::nn {
class Module;
}

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

/// A unit by its dotted name in the model, for example "h.3".
struct NamedUnit {
  std::string name;
  Unit* unit;
  torch::nn::Module* module;
};

/// The units of a model in the order of registration, the root left out; one that is registered in
/// several places appears once, under its first name.
std::vector<NamedUnit> units(torch::nn::Module& root);

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
