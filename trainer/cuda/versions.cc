// SPDX-License-Identifier: Apache-2.0
#include "trainer/cuda/versions.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

namespace phalanx {

std::string cuda_version() {
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

}  // namespace phalanx
