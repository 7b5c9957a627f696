// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "trainer/ranks/environment/environment.h"

namespace phalanx {

/// What ranks compute on.
enum class DeviceChoice {
  automatic,  ///< GPUs with a driver and at least one visible, else the CPU.
  cpu,
  cuda,
};

/// The number of a rank's GPU among those that it sees: its local rank, or 0 where the launcher
/// shows it its own alone. Throws UserError for a local rank past them.
int64_t gpu_of_rank(const Environment& environment, int64_t gpus);

/// The device of a rank: the CPU, or its GPU (gpu_of_rank), made the current one of this
/// thread; CUDA's libraries are loaded then. Throws UserError for a local rank past the number of
/// GPUs and where CUDA is asked for and answers that there is none (TorchTNT's init_from_env).
at::Device device_of_rank(const Environment& environment, DeviceChoice choice);

/// Names the piece of hardware: the same on two ranks that compute on one GPU (or part of a GPU),
/// or on the CPU of one host.
std::string hardware_of(at::Device device);

/// "cpu", or "cuda:0, NVIDIA H200, 139.8 GiB, CUDA 13.0, NCCL 2.28.9".
std::string describe_device(at::Device device);

}  // namespace phalanx
