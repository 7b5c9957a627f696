// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/replica_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/base/user_error.h"
#include "trainer/host/gpus.h"

namespace phalanx {

void require_replicas(const std::vector<int64_t>& devices, int64_t ranks,
                      bool recomputes_activations, DeviceChoice choice) {
  if (devices.empty()) return;
  if (ranks > 1) {
    throw UserError(fmt::format(
        "parallel.data_parallel.devices: replicas in one process are for one rank, and there are "
        "{}: leave it out, as each rank has a device of its own (strategy: ddp), or start one rank "
        "with launcher.processes: 1",
        ranks));
  }
  if (recomputes_activations) {
    throw UserError(
        "parallel.data_parallel.devices: activation_checkpointing does not go with replicas: set "
        "activation_checkpointing.policy: none, or use strategy: ddp");
  }
  if (choice == DeviceChoice::cpu) return;
  const int64_t gpus = usable_gpus();
  if (gpus == 0) return;  // on the CPU, or refused by device_of_rank
  const int64_t last = *std::ranges::max_element(devices);
  if (last < gpus) return;
  throw UserError(fmt::format(
      "parallel.data_parallel.devices: there is no GPU {}: {} can be used here, numbered from 0",
      last, gpus));
}

std::vector<at::Device> replica_devices(const std::vector<int64_t>& devices, at::Device original) {
  std::vector<at::Device> all(original.is_cpu() ? devices.size() : 0, original);
  if (original.is_cpu()) return all;
  if (devices.front() != original.index()) {
    throw UserError(fmt::format(
        "parallel.data_parallel.devices: the first one must be {}, the GPU that keeps the model",
        static_cast<int64_t>(original.index())));
  }
  for (const int64_t device : devices) {
    all.emplace_back(original.type(), static_cast<c10::DeviceIndex>(device));
  }
  return all;
}

std::string describe_replicas(const std::vector<int64_t>& devices, at::Device original) {
  const auto count = devices.size();
  const std::string place =
      original.is_cpu() ? "on the CPU" : fmt::format("on GPUs {}", fmt::join(devices, ", "));
  return fmt::format(
      "{} {}, threads of this process; {} {} (strategy: ddp, launcher.processes: {}) {} faster",
      count == 1 ? "one replica" : fmt::format("{} replicas", count), place, count,
      count == 1 ? "rank" : "ranks", count, count == 1 ? "is" : "are");
}

}  // namespace phalanx
