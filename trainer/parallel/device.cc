// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>

#include <exception>
#include <stdexcept>

#include "trainer/base/user_error.h"
#include "trainer/cuda/load.h"
#include "trainer/host/gpus.h"
#include "trainer/host/host.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

int64_t count_devices(const CudaPart& cuda) {
  try {
    return cuda.device_count();
  } catch (const std::exception& error) {
    throw UserError(fmt::format(
        "there is no GPU to compute on: {} To compute on the CPU set parallel.device=cpu",
        error_text(error)));
  }
}

}  // namespace

int64_t gpu_of_rank(const Environment& environment, int64_t gpus) {
  if (environment.sees_own_gpu && gpus == 1) return 0;
  if (environment.local_rank < gpus) return environment.local_rank;
  throw UserError(fmt::format(
      "rank {} has local rank {}, but this host shows {} GPUs: start at most one rank a GPU, or "
      "look at CUDA_VISIBLE_DEVICES; parallel.device=cpu computes on the CPU",
      environment.rank, environment.local_rank, gpus));
}

at::Device device_of_rank(const Environment& environment, DeviceChoice choice) {
  const bool on_cpu =
      choice == DeviceChoice::cpu || (choice == DeviceChoice::automatic && usable_gpus() == 0);
  if (on_cpu) return at::kCPU;
  const CudaPart& cuda = load_cuda();
  const int64_t devices = count_devices(cuda);
  const int64_t gpu = gpu_of_rank(environment, devices);
  if (!at::detail::getCUDAHooks().hasCUDA()) {
    throw std::logic_error(
        "LibTorch was asked about CUDA before it was loaded and says no from then on: call "
        "init_from_env first");
  }
  cuda.use_device(gpu);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(gpu)};
}

std::string hardware_of(at::Device device) {
  if (device.is_cuda()) return load_cuda().describe(device.index()).uuid;
  return fmt::format("{}, {}", host_identity(), device.str());
}

std::string describe_device(at::Device device) {
  if (!device.is_cuda()) return device.str();
  const CudaDevice gpu = load_cuda().describe(device.index());
  constexpr double kGibibyte = 1 << 30;
  return fmt::format("{}, {}, {:.1f} GiB, CUDA {}.{}, NCCL {}.{}.{}", device.str(), gpu.name,
                     static_cast<double>(gpu.bytes) / kGibibyte, gpu.cuda_version / 1000,
                     gpu.cuda_version % 1000 / 10, gpu.nccl_version / 10000,
                     gpu.nccl_version / 100 % 100, gpu.nccl_version % 100);
}

}  // namespace phalanx
