// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/compute/gemm.h"
#include "trainer/compute/product_timing.h"

namespace phalanx::compute {

/// What this machine computes a model's products with.
struct Selection {
  Gemm gemm = Gemm::library_default;
  double gain = 1;                 ///< The default's seconds over its seconds.
  bool is_measured = false;        ///< Against others, on this machine.
  std::vector<std::string> notes;  ///< Candidates that were excluded, each with the reason.
};

/// The model whose products are timed.
struct TimedModel {
  std::string config;                                ///< What its shapes follow from.
  std::function<std::vector<WeightShape>()> shapes;  ///< Called in child processes.
};

/// The fastest of `timings`; the default unless another one gains 5 %, so that noise changes no
/// last bits.
Selection fastest(const std::vector<ProductTiming>& timings);

/// The fastest candidate of this machine for this model, timed once (product_timing.h) and then
/// known from `cache` for as long as CPU, LibTorch and the model's config are the same. A cache
/// that cannot be read or written is none. Where no child process can be made, the default, with a
/// note. This process must have one thread.
Selection select_gemm(const TimedModel& model, const std::optional<std::filesystem::path>& cache);

}  // namespace phalanx::compute
