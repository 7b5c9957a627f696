#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/parallel/fsdp/flat_parameter.h"
#include "trainer/parallel/fsdp/unit_plan.h"

namespace phalanx::sharding {

/// A unit's flat parameters, one a dtype (and those without gradients apart): gathered, freed and
/// reduced together.
class ShardedUnit {
 public:
  /// As FlatParameter; `planned` has parameters.
  ShardedUnit(PlannedUnit planned, const Groups& groups, const std::shared_ptr<BufferPool>& pool);

  const std::string& name() const { return name_; }
  /// The model's unit; nullptr: the root.
  Unit* unit() const { return unit_; }
  const std::vector<std::unique_ptr<FlatParameter>>& flats() const { return flats_; }

  void start_gather();
  void finish_gather();
  void free();
  bool is_sharded() const;

  void start_reduce();
  /// Nothing where none is under way.
  void finish_reduce();
  void average();
  void reset();

  /// Forward passes of this unit whose backward is still to come.
  int64_t open_calls = 0;
  /// Called with gradients since they were last averaged: all ranks reduce it.
  bool was_called = false;
  /// Called since gradients were last reduced.
  bool needs_reduction = false;

 private:
  std::string name_;
  Unit* unit_;
  std::vector<std::unique_ptr<FlatParameter>> flats_;
};

}  // namespace phalanx::sharding
