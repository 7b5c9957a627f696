// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trainer/parallel/fsdp/call_order.h"
#include "trainer/parallel/fsdp/device_streams.h"
#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/parallel/fsdp/order_check.h"
#include "trainer/parallel/fsdp/sharded_unit.h"
#include "trainer/parallel/fsdp/used_parameters.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// When units are gathered, freed and reduced: what FullyShardedDataParallel says of it. Driven by
/// the hooks of one forward and backward pass after the other.
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

  /// Gathers what lies outside the model's units. A training pass hands averaged gradients over at
  /// the end of its backward.
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
  /// Before the gradient of the unit's result goes into it; the first of a backward pass asks
  /// autograd to call `end_backward`. nullptr: of the model's result.
  void before_backward(ShardedUnit* unit);
  /// After the gradient of its input is there.
  void after_backward(ShardedUnit& unit);
  /// Reduces and frees what is left, averages, hands over.
  void end_backward();

 private:
  void free_all();
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
  bool is_open_ = false;  ///< A forward pass has begun, and neither end has come.
  bool in_backward_ = false;
  CallOrder order_;
  std::size_t place_ = 0;  ///< In the pass's calls, from the back: what the backward does.
  ShardedUnit* reducing_ = nullptr;
};

}  // namespace phalanx::fsdp
