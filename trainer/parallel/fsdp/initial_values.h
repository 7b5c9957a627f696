// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "trainer/memory/deferred_init.h"
#include "trainer/parallel/fsdp/sharded_unit.h"
#include "trainer/parallel/fsdp/unit_plan.h"

namespace phalanx {
class Ranks;
}

namespace phalanx::fsdp {

/// A model's values on their way into shards: those that it has, and those that are still to be
/// drawn.
class InitialValues {
 public:
  /// Before the units are made: their tensors lose their memory then. `deferred` may be nullptr.
  InitialValues(const std::vector<PlannedUnit>& planned, std::shared_ptr<DeferredInit> deferred);

  /// Gives a unit those that are there, and their memory back.
  void fill(ShardedUnit& unit);
  /// Draws the others one by one, each straight into this rank's part of one of the units; only
  /// rank 0 of `from_first` does, where it is given, and sends them.
  void draw(const std::vector<std::unique_ptr<ShardedUnit>>& units, const Ranks* from_first);

 private:
  /// A parameter whose values are still to come.
  struct Awaited {
    at::Tensor source;  ///< An alias that keeps the storage it is to be filled in.
    const at::TensorImpl* identity;
  };

  std::shared_ptr<DeferredInit> deferred_;
  std::unordered_map<const at::TensorImpl*, at::Tensor> present_;
  std::unordered_map<const c10::StorageImpl*, std::vector<Awaited>> awaited_;
};

}  // namespace phalanx::fsdp
