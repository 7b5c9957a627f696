// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/parallel/device.h"
#include "trainer/parallel/mesh.h"
#include "trainer/precision/numerics.h"
#include "trainer/ranks/environment/environment.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What ranks compute on, and how long they wait for each other.
struct JoinOptions {
  DeviceChoice device = DeviceChoice::automatic;
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);  ///< For all ranks to come.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);      ///< For one operation.
  /// How this process computes from then on (prepare_numerics, use_numerics); none: as it does.
  std::optional<Numerics> numerics = std::nullopt;
};

/// The ranks that this process has joined, for as long as it lives: TorchTNT's init_from_env and
/// torch.distributed's destroy_process_group in one. Destroyed after an error it closes this rank's
/// connections at once, so that the others notice; it waits for nobody.
class World {
 public:
  World(Ranks ranks, at::Device device, std::unique_ptr<KeyValueStore> job_store,
        int64_t restart_count = 0, std::vector<int64_t> local_ranks_on_cores = {0});
  World(World&&) noexcept;
  World& operator=(World&&) = delete;
  ~World();

  const Ranks& ranks() const { return ranks_; }
  /// How the ranks are arranged. Nothing but data is divided among them so far: one dimension,
  /// Mesh::kData, of all ranks.
  const Mesh& mesh() const { return mesh_; }
  /// The ranks along Mesh::kData: samples are dealt and gradients averaged among them.
  const Ranks& data_ranks() const { return ranks_; }
  /// Where this rank computes.
  at::Device device() const { return device_; }
  /// Keys that outlast a restart of the ranks, where the launcher's agent keeps the store.
  KeyValueStore& job_store() const { return *job_store_; }
  /// Environment::restart_count.
  int64_t restart_count() const { return restart_count_; }
  /// Local ranks of this host that may use the same cores as this one, itself among them,
  /// ascending. They are their launcher's, which need not be in the order of ranks.
  const std::vector<int64_t>& local_ranks_on_cores() const { return local_ranks_on_cores_; }

  /// Ends the group in order: once all ranks have come here. Throws CommunicationError.
  void close();

 private:
  void end_presence() const;

  Ranks ranks_;
  Mesh mesh_;
  at::Device device_;
  std::unique_ptr<KeyValueStore> job_store_;
  int64_t restart_count_;
  std::vector<int64_t> local_ranks_on_cores_;
};

/// Joins the ranks that the environment names, through NCCL for tensors on GPUs and Gloo for those
/// in host memory; a world of one needs no variables and opens no socket. Comes before anything
/// that asks LibTorch about CUDA. Throws UserError for a device that is not there, a wrong
/// environment (read_environment), an address that is unknown, a port that is taken or where nobody
/// answers, and ranks that are missing after `join_timeout`, by their numbers.
World init_from_env(const JoinOptions& options = {});
World init_from_env(const Environment& environment, const JoinOptions& options = {});

}  // namespace phalanx
