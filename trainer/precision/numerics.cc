// SPDX-License-Identifier: Apache-2.0
#include "trainer/precision/numerics.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr const char* kWorkspace = "CUBLAS_WORKSPACE_CONFIG";
// LibTorch takes these two for deterministic (Context::checkCuBLASConfigDeterministic).
constexpr std::string_view kFast = ":4096:8";
constexpr std::string_view kSmall = ":16:8";

const char* name_of(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::highest:
      return "highest";
    case MatmulPrecision::high:
      return "high";
    case MatmulPrecision::medium:
      return "medium";
  }
  return "";
}

}  // namespace

void prepare_numerics(const Numerics& numerics) {
  if (!numerics.deterministic) return;
  ::setenv(kWorkspace, kFast.data(), /*overwrite=*/0);
  const std::string_view taken = std::getenv(kWorkspace);
  if (taken == kFast || taken == kSmall) return;
  throw UserError(
      fmt::format("training.deterministic is true, but {} is '{}', with which cuBLAS does not "
                  "repeat its results: unset the variable, or set it to {} or {}",
                  kWorkspace, taken, kFast, kSmall));
}

void use_numerics(const Numerics& numerics) {
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision(name_of(numerics.float32_matmul));
  const bool deterministic = numerics.deterministic;
  context.setDeterministicAlgorithms(deterministic, deterministic && numerics.warn_only);
  context.setDeterministicCuDNN(deterministic);
  context.setDeterministicMkldnn(deterministic);
  if (deterministic) context.setBenchmarkCuDNN(false);
  context.setSDPUseCuDNN(!numerics.changing_shapes);
  // Nothing here reads memory that nobody has written; filling it would cost a pass over it.
  context.setDeterministicFillUninitializedMemory(!deterministic);
}

}  // namespace phalanx
