// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <torch/csrc/cuda/nccl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>

#include "trainer/cuda/cuda_part.h"

namespace phalanx {
namespace {

std::string hexadecimal(const cudaUUID_t& uuid) {
  std::string text;
  for (const char byte : uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Once a collective has failed c10d's watchdog sleeps four times
// TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC, a minute, before it ends the rank, for all ranks to write
// what its flight recorder has (Watchdog::runLoop in ProcessGroupNCCL.cpp). Here a rank ends at
// once and says what it was doing, unless somebody asks for that dump.
void end_at_once_unless_a_dump_is_wanted() {
  constexpr std::array kWanted{"TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_BUFFER_SIZE",
                               "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};
  const auto is_on = [](const char* variable) {
    const char* const value = ::getenv(variable);
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
  };
  if (std::any_of(kWanted.begin(), kWanted.end(), is_on)) return;
  for (const char* variable :
       {"TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"}) {
    ::setenv(variable, "0", /*overwrite=*/0);
  }
}

class LinkedCudaPart final : public CudaPart {
 public:
  int64_t device_count() const override { return c10::cuda::device_count_ensure_non_zero(); }

  CudaDevice describe(int64_t device) const override {
    const cudaDeviceProp* const properties =
        at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
    // LibTorch's answer, major << 32 | minor << 16 | patch: linked to NCCL itself, this object
    // would look for a library that only LibTorch knows the place of.
    const std::uint64_t nccl = torch::cuda::nccl::version();
    const auto part = [nccl](int shift) { return static_cast<int>(nccl >> shift & 0xFFFF); };
    return {.name = properties->name,
            .pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", properties->pciDomainID,
                                       properties->pciBusID, properties->pciDeviceID),
            .uuid = hexadecimal(properties->uuid),
            .bytes = static_cast<int64_t>(properties->totalGlobalMem),
            .cuda_version = CUDART_VERSION,
            .nccl_version = part(32) * 10000 + part(16) * 100 + part(0)};
  }

  void use_device(int64_t device) const override {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  }

  void pin(void* memory, std::size_t bytes) const override {
    C10_CUDA_CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
  }

  void unpin(void* memory) const noexcept override {
    C10_CUDA_IGNORE_ERROR(cudaDeviceSynchronize());  // a copy may still read it
    C10_CUDA_IGNORE_ERROR(cudaHostUnregister(memory));
  }

  c10::intrusive_ptr<c10d::Backend> make_nccl_backend(
      c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t world_size,
      std::chrono::milliseconds timeout) const override {
    using Nccl = c10d::ProcessGroupNCCL;
    auto options = Nccl::Options::create();
    options->timeout = timeout;
    end_at_once_unless_a_dump_is_wanted();
    return c10::make_intrusive<Nccl>(std::move(store), static_cast<int>(rank),
                                     static_cast<int>(world_size), std::move(options));
  }
};

}  // namespace
}  // namespace phalanx

extern "C" __attribute__((visibility("default"))) const phalanx::CudaPart* phalanx_cuda_part() {
  static const phalanx::LinkedCudaPart part;
  return &part;
}
