// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parallel_config.h"

#include <fmt/format.h>

#include <set>

#include "trainer/config/tree/schema.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

constexpr std::chrono::milliseconds kNoTime{0};

std::optional<std::string> wrong_group_size(const ParallelConfig& config) {
  const FsdpMesh& mesh = config.fsdp.mesh;
  const bool has_mesh = mesh.replicate || mesh.shard;
  const bool is_grouped = has_mesh || config.fsdp.shard_group_size;
  if (!config.use_fsdp || !is_grouped || is_hybrid(config.sharding_strategy)) return std::nullopt;
  return std::string(has_mesh ? "fsdp.mesh: " : "fsdp.shard_group_size: ") +
         std::string(to_string(config.sharding_strategy)) + " shards over " +
         (config.sharding_strategy == ShardingStrategy::no_shard ? "nobody" : "all ranks") +
         "; leave it out, or choose HYBRID_SHARD or _HYBRID_SHARD_ZERO2";
}

// As many as c10::DeviceIndex has.
constexpr int64_t kMostGpu = 127;

std::optional<std::string> wrong_devices(const DataParallelOptions& options) {
  std::set<int64_t> seen;
  for (const int64_t device : options.devices) {
    if (device < 0 || device > kMostGpu) {
      return fmt::format("devices: {} is no number of a GPU, which are 0 to {}", device, kMostGpu);
    }
    if (!seen.insert(device).second) {
      return fmt::format("devices: {} is there twice: name each GPU once", device);
    }
  }
  return std::nullopt;
}

std::optional<std::string> sharded_replicas(const ParallelConfig& config) {
  if (!config.use_fsdp || config.data_parallel.devices.empty()) return std::nullopt;
  return "data_parallel.devices: replicas in one process are whole, and use_fsdp shards the model: "
         "leave one of them out";
}

}  // namespace

void DataParallelOptions::describe(config::Schema<DataParallelOptions>& s) {
  s.field("devices", &DataParallelOptions::devices,
          "GPUs by number, the model's own first; on the CPU as many threads: each has a replica "
          "and a part of every micro-batch; []: no replicas. Ranks (strategy: ddp) are faster")
      .resume_may_change();
  s.check(wrong_devices);
}

void DdpOptions::describe(config::Schema<DdpOptions>& s) {
  s.field("broadcast_buffers", &DdpOptions::broadcast_buffers,
          "rank 0's buffers go to all ranks before each forward pass");
  s.field("bucket_cap_mb", &DdpOptions::bucket_cap_mb,
          "size up to which gradients are reduced together; null: 25, the first bucket 1")
      .unit("MiB")
      .greater_than(0);
  s.field("find_unused_parameters", &DdpOptions::find_unused_parameters,
          "look in each step for parameters that the loss does not depend on");
  s.field("check_reduction", &DdpOptions::check_reduction,
          "before each forward pass check that the last backward's reductions were issued")
      .resume_may_change();
  s.field("gradient_as_bucket_view", &DdpOptions::gradient_as_bucket_view,
          "gradients live in the buckets that are reduced: saves a copy and their memory");
  s.field("static_graph", &DdpOptions::static_graph,
          "the same parameters are used in every step; allows activation checkpointing and unused "
          "parameters without the search for them");
  s.field("comm_hook", &DdpOptions::comm_hook,
          "how buckets are reduced; null: their sum, divided by the ranks")
      .out_of(registered_choice<CommHook>());
}

void ParallelConfig::describe(config::Schema<ParallelConfig>& s) {
  s.field("use_fsdp", &ParallelConfig::use_fsdp,
          "shard the model over the ranks; false: DDP. A world of one is not wrapped at all")
      .resume_may_change();
  s.field("single_rank", &ParallelConfig::single_rank,
          "refuse to train on several ranks; strategy: none sets it")
      .resume_may_change();
  s.field("cpu_offload", &ParallelConfig::cpu_offload,
          "FSDP: keep shards, gradients and optimizer on the CPU")
      .resume_may_change();
  s.field("sharding_strategy", &ParallelConfig::sharding_strategy,
          "FSDP: what is sharded, and over which ranks")
      .choices({{"FULL_SHARD", ShardingStrategy::full_shard},
                {"SHARD_GRAD_OP", ShardingStrategy::shard_grad_op},
                {"NO_SHARD", ShardingStrategy::no_shard},
                {"HYBRID_SHARD", ShardingStrategy::hybrid_shard},
                {"_HYBRID_SHARD_ZERO2", ShardingStrategy::hybrid_shard_zero2}})
      .numbered()
      .resume_may_change();
  s.field("sync_module_states", &ParallelConfig::sync_module_states,
          "before training rank 0's parameters and buffers go to all ranks; DDP's init_sync");
  s.field("sync_batchnorm", &ParallelConfig::sync_batchnorm,
          "training computes mean and variance of batch normalization over the batches of all "
          "ranks");
  s.field("device", &ParallelConfig::device,
          "what ranks compute on: a GPU each (cuda), the CPU, or auto: GPUs where there are some")
      .choices({{"auto", DeviceChoice::automatic},
                {"cpu", DeviceChoice::cpu},
                {"cuda", DeviceChoice::cuda}})
      .resume_may_change();
  s.field("numa_binding", &ParallelConfig::numa_binding,
          "cores that a rank is bound to: the NUMA node or the socket of its GPU, a share of that "
          "node for itself (exclusive), cores of it that share a cache (core-complex), none, or "
          "auto: a GPU's node, without GPUs a node or a socket where that costs no rank its share")
      .choices(kNumaBindings)
      .resume_may_change();
  s.field("join_timeout", &ParallelConfig::join_timeout,
          "how long to wait at the start for all ranks to come")
      .deprecated("join_timeout_seconds", "s")
      .greater_than(kNoTime)
      .resume_may_change();
  s.field("timeout", &ParallelConfig::timeout,
          "how long a collective may take before the other ranks count as hung")
      .deprecated("timeout_seconds", "s")
      .greater_than(kNoTime)
      .resume_may_change();
  s.field("data_parallel", &ParallelConfig::data_parallel,
          "replicas of the model in one process, as torch.nn.DataParallel has them; for one rank");
  s.field("ddp", &ParallelConfig::ddp, "how DDP reduces gradients");
  s.field("fsdp", &ParallelConfig::fsdp, "how FSDP cuts and gathers the model");
  s.check(wrong_group_size);
  s.check(sharded_replicas);
  s.ineffective({"cpu_offload", "sharding_strategy", "fsdp"}, "use_fsdp is false",
                [](const ParallelConfig& config) { return !config.use_fsdp; });
  // FSDP takes passes that leave parameters out as they are: what ddp.find_unused_parameters asks
  // for holds there, too.
  s.ineffective({"ddp.broadcast_buffers", "ddp.bucket_cap_mb", "ddp.check_reduction",
                 "ddp.gradient_as_bucket_view", "ddp.static_graph", "ddp.comm_hook"},
                "use_fsdp is true", [](const ParallelConfig& config) { return config.use_fsdp; });
  s.preset("ddp", "each rank holds the whole model; gradients are averaged",
           [](ParallelConfig& config) { config.use_fsdp = false; });
  s.preset("fsdp", "parameters, gradients and optimizer state are sharded over the ranks",
           [](ParallelConfig& config) { config.use_fsdp = true; });
}

}  // namespace phalanx
