// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/gemm.h"
#include "trainer/compute/weight_shape.h"

namespace phalanx::compute {

/// What a candidate needed.
struct ProductTiming {
  Gemm gemm = Gemm::library_default;
  double seconds = 0;    ///< CPU time of the products, the least of all rounds.
  std::string excluded;  ///< Why it cannot be taken: it failed, or its results are wrong.
};

/// Times each candidate on the products of these weights, forward and backward, with 128 samples;
/// sizes above 1024 count as 1024. Each computes on one thread in a child process, in turns, until
/// `budget` is over; each has at least one turn. Results are compared with sums in double
/// precision. This process computes nothing and starts no thread; it must have only one.
/// `weights` is called in the children. Throws std::system_error where there are no processes.
std::vector<ProductTiming> time_products(
    std::span<const Gemm> gemms, const std::function<std::vector<WeightShape>()>& weights,
    std::chrono::milliseconds budget = std::chrono::milliseconds(200));

}  // namespace phalanx::compute
