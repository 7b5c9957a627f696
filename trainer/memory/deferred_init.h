// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

namespace phalanx {

/// A model's initial values, not drawn yet: a model is built without the memory of its parameters,
/// and each is filled when somebody has a place for it; in the same order from the same random
/// numbers, so bitwise as if nothing had been deferred (torchdistX's deferred_init). Only what an
/// author does with host tensors while they are built is deferred: fills such as normal_, uniform_,
/// zeros, and arithmetic on them. Whatever else needs the values gets them: all that is deferred
/// so far is filled then, and stays.
class DeferredInit {
 public:
  /// Runs `build`, on this thread.
  static std::shared_ptr<DeferredInit> record(const std::function<void()>& build);
  ~DeferredInit();
  DeferredInit(const DeferredInit&) = delete;
  DeferredInit& operator=(const DeferredInit&) = delete;

  /// Whether the tensor's storage is still to be filled.
  bool is_pending(const at::Tensor& tensor) const;

  /// What is called when a storage has its values: whether it keeps them, or its memory is given up
  /// at once, as `values` has been copied elsewhere. `values` is a one-dimensional view of it.
  using Filled = std::function<bool(const c10::StorageImpl* storage, const at::Tensor& values)>;

  /// Fills all storages, one after the other; afterwards nothing is pending. Random numbers are
  /// drawn where a model that was built at once would have drawn them: if they were neither drawn
  /// nor seeded since, they go on behind it.
  void fill(const Filled& filled);
  /// Fills all of them where they are.
  void fill();
  /// Draws nothing: each storage gets memory, in the order of `fill`, and `filled` sets its values.
  void fill_from_elsewhere(const Filled& filled);

  /// Gives up the memory of a storage later than when it was filled; `values` is its view.
  static void give_up_memory(const at::Tensor& values);

 private:
  struct Operation;
  class Recorder;

  DeferredInit();
  void run_operations(const Filled& filled);
  void finish(const Operation& last, const Filled& filled);

  std::vector<Operation> operations_;
  std::unordered_set<const c10::StorageImpl*> pending_;
  at::Tensor random_state_;  ///< State of the CPU's generator where `record` ended.
};

}  // namespace phalanx
