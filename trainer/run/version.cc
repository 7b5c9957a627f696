// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/version.h"

#include <fmt/format.h>
#include <torch/version.h>

#include "trainer/base/version.h"
#include "trainer/cuda/versions.h"

namespace phalanx {
namespace {

// Set before main, where files are initialised in no known order.
std::string_view& commit_of_build() {
  static std::string_view commit = "unknown";
  return commit;
}

}  // namespace

std::string_view commit() { return commit_of_build(); }

bool set_commit(std::string_view text) {
  commit_of_build() = text;
  return true;
}

std::string versions() {
  return fmt::format("phalanx {}, commit {}\nLibTorch {}\nCUDA {}\nNCCL {}\n", kVersion, commit(),
                     TORCH_VERSION, cuda_version(), nccl_version());
}

}  // namespace phalanx
