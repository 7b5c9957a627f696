// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "trainer/parallel/batch_norm/module_batch_norm.h"
#include "trainer/parallel/fsdp/device_streams.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/parallel/fsdp/groups.h"
#include "trainer/parallel/fsdp/pass_hooks.h"
#include "trainer/parallel/fsdp/resizable_storage.h"
#include "trainer/parallel/fsdp/schedule.h"
#include "trainer/parallel/fsdp/sharded_unit.h"
#include "trainer/parallel/fsdp/unit_plan.h"

namespace phalanx {

/// What an engine holds. Units, schedule and hooks know each other, so they stay where they are.
struct FullyShardedDataParallel::Impl {
  Ranks ranks;
  ShardingStrategy strategy;
  AfterForward after;
  fsdp::Groups groups;
  std::shared_ptr<const fsdp::DeviceStreams> streams;  ///< nullptr on the CPU.
  std::shared_ptr<fsdp::BufferPool> pool;
  /// What lies outside of units is gathered once a step: between, others may use its memory.
  std::shared_ptr<fsdp::BufferPool> keeps_nothing;
  std::vector<std::unique_ptr<fsdp::ShardedUnit>> units;
  std::vector<at::Tensor> buffers;
  std::optional<batch_norm::ModuleBatchNorm> batch_statistics;  ///< With sync_batchnorm.
  bool buffers_may_differ = true;
  bool synchronize = true;
  std::optional<at::ScalarType> compute, reduce;  ///< Where they are not the parameters' own.
  std::optional<at::ScalarType> input_dtype;  ///< What goes into the model and units is cast to it.
  /// By the module's tensor, and in the module's order.
  std::unordered_map<const at::TensorImpl*, NamedParameter> locals;
  std::vector<NamedParameter> local_parameters;
  /// Parts that count on this rank where a shard group's parts are added up.
  std::unordered_map<const at::TensorImpl*, bool> counts;
  std::unique_ptr<fsdp::Schedule> schedule;
  std::optional<fsdp::PassHooks> hooks;

  std::optional<Ranks> statistics_ranks() const {
    return batch_statistics ? batch_statistics->ranks() : std::nullopt;
  }
  void make_pools(at::Device device);
  void add_unit(fsdp::PlannedUnit planned, const fsdp::FlatOptions& options);
  void index_locals(torch::nn::Module& module);
};

}  // namespace phalanx
