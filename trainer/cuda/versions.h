// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// The version of CUDA whose headers this program was compiled with, those of LibTorch's wheel:
/// "13.0". Nothing of CUDA is loaded.
std::string cuda_version();

/// That of NCCL: "2.28.9".
std::string nccl_version();

}  // namespace phalanx
