// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/cuda/cuda_part.h"

namespace phalanx {

/// Loads the CUDA part of this program, LibTorch's CUDA libraries with it, at the first call; the
/// process keeps it. It comes before anything that asks LibTorch about CUDA (pinned memory, a
/// generator of all devices): LibTorch keeps the first answer for good. Must not be called before a
/// process forks its ranks. Throws std::runtime_error saying which library could not be loaded.
const CudaPart& load_cuda();

}  // namespace phalanx
