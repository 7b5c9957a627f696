// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/parallel/fsdp/flat_parameter.h"
#include "trainer/parallel/fsdp/unit_plan.h"

namespace phalanx::fsdp {

/// A unit's flat parameters, one a dtype (and those without gradients apart): gathered, freed and
/// reduced together.
class ShardedUnit {
 public:
  /// As FlatParameter; `planned` has parameters.
  ShardedUnit(PlannedUnit planned, std::size_t number, const Groups& groups,
              const std::shared_ptr<BufferPool>& pool, const FlatOptions& options);

  const std::string& name() const { return name_; }
  /// Its place among the units.
  std::size_t number() const { return number_; }
  /// The model's unit; nullptr: the root, or what is kept whole.
  HookedModule* unit() const { return unit_; }
  /// What lies outside of the model's units: whole during the whole pass.
  bool is_outside() const { return unit_ == nullptr; }
  const std::vector<std::unique_ptr<FlatParameter>>& flats() const { return flats_; }

  void start_gather();
  void finish_gather();
  bool is_gathered() const;
  void free_after_forward();
  void free();

  void start_reduce();
  /// Nothing where none is under way.
  void finish_reduce();
  /// `finish_average` does nothing where none is under way.
  void start_average();
  void finish_average();
  void reset();

  // Where a unit is between two optimizer steps; the schedule's.
  //   called with gradients     was_called, needs_reduction
  //   a backward pass begins    the same, and open_calls: its calls in the passes of that
  //   its backward is over      open_calls comes to 0; start_reduce: needs_reduction is gone,
  //   unless
  //                             gradients stay whole until a later micro-batch
  //   the last has been reduced is_averaged
  //   handed over               none of them

  /// Its calls that the backward pass which runs has still to come to.
  int64_t open_calls = 0;
  /// Called with gradients since they were last averaged: all ranks reduce it.
  bool was_called = false;
  /// Called since gradients were last reduced.
  bool needs_reduction = false;
  /// Averaged since gradients were last handed over, or on the way to it.
  bool is_averaged = false;

 private:
  std::string name_;
  std::size_t number_;
  HookedModule* unit_;
  std::vector<std::unique_ptr<FlatParameter>> flats_;
};

}  // namespace phalanx::fsdp
