// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/forward.h"
#include "trainer/parallel/device.h"
#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

/// What DDP offers: the fields, names and defaults of TorchTNT's DDPStrategy and of
/// torch.nn.parallel.DistributedDataParallel.
struct DdpOptions {
  bool broadcast_buffers = true;
  std::optional<double> bucket_cap_mb;
  bool find_unused_parameters = false;
  bool check_reduction = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  std::optional<config::Chosen> comm_hook;

  static void describe(config::Schema<DdpOptions>& s);
};

/// Replicas of the model in one process, each with a part of a micro-batch: the devices of
/// torch.nn.DataParallel. On the CPU the numbers only say how many there are. Empty: none.
struct DataParallelOptions {
  std::vector<int64_t> devices;

  static void describe(config::Schema<DataParallelOptions>& s);
};

/// The section `parallel`: ml's ParallelConfig, what ranks compute on and how long they wait for
/// each other.
struct ParallelConfig {
  bool use_fsdp = false;
  bool single_rank = false;
  bool cpu_offload = false;
  ShardingStrategy sharding_strategy = ShardingStrategy::hybrid_shard;
  bool sync_module_states = true;
  bool sync_batchnorm = false;
  DeviceChoice device = DeviceChoice::automatic;
  NumaBinding numa_binding = NumaBinding::automatic;
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  DataParallelOptions data_parallel;
  DdpOptions ddp;
  FsdpOptions fsdp;

  static void describe(config::Schema<ParallelConfig>& s);
};

}  // namespace phalanx
