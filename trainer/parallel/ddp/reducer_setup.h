// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch::nn {
class Module;
}

namespace phalanx {

struct DdpOptions;
class OrderedReducer;
class Ranks;

/// The parameters whose gradients are reduced, with their names by place.
struct ReducedParameters {
  std::vector<at::Tensor> tensors;
  std::unordered_map<size_t, std::string> names;
};

/// Those of a module that require a gradient; one that several modules share counts once. Throws
/// std::logic_error if there is none.
ReducedParameters reduced_parameters(torch::nn::Module& module);

/// The reducer of these parameters, with buckets as the options say.
std::shared_ptr<OrderedReducer> make_reducer(ReducedParameters parameters, const Ranks& ranks,
                                             const DdpOptions& options);

}  // namespace phalanx
