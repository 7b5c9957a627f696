// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/reducer_setup.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "trainer/api/parameters.h"
#include "trainer/parallel/ddp/ordered_reducer.h"
#include "trainer/parallel/parallel_config.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {
namespace {

constexpr int64_t kMebibyte = 1024 * 1024;

}  // namespace

ReducedParameters reduced_parameters(torch::nn::Module& module) {
  ReducedParameters parameters;
  for (NamedParameter& parameter : local_parameters(module)) {
    if (!parameter.tensor.requires_grad()) continue;
    parameters.names[parameters.tensors.size()] = std::move(parameter.name);
    parameters.tensors.push_back(std::move(parameter.tensor));
  }
  if (parameters.tensors.empty()) {
    throw std::logic_error("DDP needs a module with a parameter that requires a gradient");
  }
  return parameters;
}

std::shared_ptr<OrderedReducer> make_reducer(ReducedParameters parameters, const Ranks& ranks,
                                             const DdpOptions& options) {
  const int64_t cap = options.bucket_cap_mb
                          ? static_cast<int64_t>(*options.bucket_cap_mb * kMebibyte)
                          : static_cast<int64_t>(c10d::kDefaultBucketBytesCap);
  const int64_t first_cap =
      options.bucket_cap_mb ? cap : static_cast<int64_t>(c10d::kDefaultFirstBucketBytes);
  // Buckets are made anew in the order of the first backward, but where unused parameters are
  // looked for; until then one bucket serves (Python's _ddp_init_helper says why).
  std::vector<size_t> limits{static_cast<size_t>(std::numeric_limits<int64_t>::max())};
  if (options.find_unused_parameters && !options.static_graph) {
    limits = {static_cast<size_t>(cap)};
    if (!options.bucket_cap_mb) limits.insert(limits.begin(), static_cast<size_t>(first_cap));
  }
  const std::vector<bool> sparse(parameters.tensors.size(), false);
  auto buckets =
      std::get<0>(c10d::compute_bucket_assignment_by_size(parameters.tensors, limits, sparse));
  std::reverse(buckets.begin(), buckets.end());  // gradients come in about that order
  return std::make_shared<OrderedReducer>(
      std::move(parameters.tensors), std::move(buckets), process_group(ranks), sparse, cap,
      options.find_unused_parameters, options.gradient_as_bucket_view, std::move(parameters.names),
      first_cap, /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<int64_t>{});
}

}  // namespace phalanx
