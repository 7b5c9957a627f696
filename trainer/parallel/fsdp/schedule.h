// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trainer/parallel/fsdp/call_order.h"
#include "trainer/parallel/fsdp/device_streams.h"
#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/parallel/fsdp/open_passes.h"
#include "trainer/parallel/fsdp/order_check.h"
#include "trainer/parallel/fsdp/sharded_unit.h"
#include "trainer/parallel/fsdp/used_parameters.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// When units are gathered, freed and reduced: what FullyShardedDataParallel says of it. Driven by
/// the hooks of forward and backward passes.
class Schedule {
 public:
  /// How a pass treats the units.
  struct Rules {
    bool reshard_after_forward = true;
    std::optional<BackwardPrefetch> backward_prefetch = BackwardPrefetch::pre;
    std::optional<bool> forward_prefetch;  ///< None: where passes repeat each other.
    AccumulatedGradients accumulated = AccumulatedGradients::whole;
    std::chrono::milliseconds order_timeout = std::chrono::seconds(30);
  };

  /// The units outlive it; those without a Unit of the model are whole during the whole pass.
  /// `streams`: those that the units gather and reduce on; nullptr on the CPU.
  Schedule(const std::vector<std::unique_ptr<ShardedUnit>>& units, const Ranks& world, Rules rules,
           std::shared_ptr<const DeviceStreams> streams = nullptr);

  /// Gathers what lies outside the model's units. Where the newest pass with a backward one is a
  /// training pass, backward passes hand averaged gradients over at their end.
  void begin_pass(PassKind kind);
  /// After a pass without a backward one: frees everything.
  void end_pass();
  /// The same around any use of the model without gradients, whose order nobody compares.
  void begin_use();
  void end_use();

  void before_forward(ShardedUnit& unit, bool with_backward);
  void after_forward(ShardedUnit& unit, bool with_backward);
  /// Around a forward pass that is run once more within the backward: whether the unit was gathered
  /// for it alone. Nothing else follows it.
  bool before_recomputation(ShardedUnit& unit);
  void after_recomputation(ShardedUnit& unit, bool was_gathered_for_it);
  /// A number for each unit that changes when an optimizer moves its weights.
  std::vector<int64_t> weights_versions() const;
  /// A backward pass of these forward passes begins, in their order. Throws std::logic_error where
  /// the weights of a unit that one has called, or of what lies outside of units, have moved since.
  void begin_backward(const std::vector<std::shared_ptr<ForwardPass>>& passes);
  /// Before the gradient of the unit's result goes into it.
  void before_backward(ShardedUnit& unit);
  /// After the gradient of its input is there.
  void after_backward(ShardedUnit& unit);
  /// Reduces and frees what is left, averages, hands over.
  void end_backward();

 private:
  void free_all();
  void gather_outside();
  void require_present_weights(const ForwardPass& pass) const;
  void part_uses_outside();
  void prefetch_after(ShardedUnit& unit, bool with_backward);
  bool reduces_now() const;
  void gather(ShardedUnit& unit);
  void release(ShardedUnit& unit);
  void reduce(ShardedUnit& unit);
  void finish_reduction();
  void average(ShardedUnit& unit);
  void average_the_rest();
  void prefetch_before(const ShardedUnit& unit);
  std::vector<bool> used_here() const;
  void finish_averages();
  void publish_gradients();
  void reset();

  const std::vector<std::unique_ptr<ShardedUnit>>& units_;
  Rules rules_;
  std::shared_ptr<const DeviceStreams> streams_;
  OrderCheck order_check_;
  UsedParameters used_;
  bool is_checked_ = true;
  bool synchronize_ = true;
  bool is_open_ = false;  ///< A forward pass has begun, and no end has come since.
  bool in_backward_ = false;
  CallOrder order_;
  std::vector<std::size_t> calls_;  ///< Units of the backward pass, by call in forward passes.
  std::size_t place_ = 0;           ///< In these, from the back: what the backward does.
  ShardedUnit* reducing_ = nullptr;
};

}  // namespace phalanx::fsdp
