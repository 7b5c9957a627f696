// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace phalanx {

class HookedModule;

/// A module's forward with everything but its tensors bound. It takes the tensors of its arguments
/// and gives those of its result, both from left to right (see tensors_in.h). May be kept, and
/// called again.
using ModuleForward = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> inputs)>;

/// Runs around a module's forward: what sharding, activation checkpointing and profiling attach.
class ModuleHook {
 public:
  virtual ~ModuleHook() = default;

  /// Calls `forward` with the inputs, or with as many others, and returns its results, or as many
  /// others.
  virtual std::vector<at::Tensor> around(HookedModule& module, std::vector<at::Tensor> inputs,
                                         const ModuleForward& forward) = 0;
};

/// Where a new hook runs: around all earlier ones, or within them.
enum class HookPlace { outermost, innermost };

/// The hooks of a module. A module's author derives from it and declares the holder with
/// `HOOKED(Attention)`; most derive from Unit, which adds sharding.
class HookedModule {
 public:
  virtual ~HookedModule() = default;

  void attach(std::shared_ptr<ModuleHook> hook, HookPlace place = HookPlace::innermost);
  bool has_hooks() const { return !hooks_.empty(); }

  /// The author's `forward` with the hooks around it.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, ModuleForward forward);

  /// Notes that the exception that is handled has left this module's forward, unless it has left
  /// one within it before.
  void note_failure() const;

 private:
  std::vector<std::shared_ptr<ModuleHook>> hooks_;  ///< The outermost first.
};

/// The innermost module with hooks whose forward an exception has left, on any thread, of the last
/// exception that did so; nullptr for another exception. It may be gone by now.
const HookedModule* failed_module(const std::exception_ptr& error);

/// Whether this thread runs a module's forward once more, for the activations that its backward
/// needs. What counts forward passes, or plans by them, skips such a pass.
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
