// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/api/tensors_in.h"
#include "trainer/parallel/replicas/replicas.h"
#include "trainer/parallel/replicas/scattered_tensors.h"

namespace phalanx {

/// Copies of a module by its own `clone` (torch::nn::Cloneable). Throws std::invalid_argument for
/// one that has none, with its class.
std::vector<std::shared_ptr<torch::nn::Module>> clones(const torch::nn::Module& module,
                                                       size_t count);

/// torch.nn.DataParallel for a custom loop: one process computes a module's forward pass on
/// several devices, each with a chunk of the samples. The backward pass of what it returns adds the
/// gradients of all replicas to the module's own; an optimizer, a checkpoint and an evaluation use
/// the module itself. Running statistics are those of replica 0. A rank for each device (DDP) is
/// faster: nothing is copied to replicas before each pass, and no thread waits for another.
template <class Impl>
class DataParallel {
 public:
  /// Replicas are clones of the module. `devices`: at least one, the first of which is the
  /// module's, and each GPU once; on the CPU, `{at::kCPU, at::kCPU}` computes in two threads.
  /// LibTorch's clones do not keep tied weights: a module that has some needs `make` below. One
  /// that registers a tensor under two names is refused with std::invalid_argument; one that ties
  /// members after they were registered (`head->weight = embedding->weight`) cannot be told from
  /// others, and its clones compute with a weight of their own.
  DataParallel(std::shared_ptr<Impl> module, std::vector<at::Device> devices)
      : DataParallel(module, clones(*module, devices.size()), devices) {}

  /// Replicas are built by `make` as the module was: for one that has no `clone`, or tied weights.
  DataParallel(std::shared_ptr<Impl> module, const std::function<std::shared_ptr<Impl>()>& make,
               std::vector<at::Device> devices)
      : DataParallel(module, made(make, devices.size()), devices) {}

  /// Calls `forward` on the replicas. Tensors in the arguments (as a unit's, trainer/api/unit.h)
  /// are cut along their first dimension by torch.chunk's sizes; fewer samples than devices use
  /// fewer. All else is copied for each replica. Tensors of the results are put together along the
  /// first dimension on the first device, those without dimensions to a vector; all else is replica
  /// 0's. What a replica throws is thrown with its number, once all have ended.
  template <class... Args>
  auto operator()(Args... args) {
    using Result = std::decay_t<decltype(std::declval<Impl&>().forward(std::move(args)...))>;
    static_assert((kIsVisible<Args> && ...) && kIsVisible<Result>,
                  "arguments and results are tensors, optional tensors, vectors and tuples of "
                  "them, structs with tensors(), or values without tensors (tensors_in.h)");
    std::tuple<Args...> arguments(std::move(args)...);
    const auto inputs = scatter(take_tensors(arguments), devices_);
    std::vector<std::optional<Result>> results(inputs.size());
    std::vector<std::vector<at::Tensor>> outputs(inputs.size());
    replicas_.run(inputs.size(), [&](size_t i) {
      std::tuple<Args...> own = arguments;
      put_tensors(own, inputs[i]);
      auto& replica = dynamic_cast<Impl&>(*modules_[i]);
      results[i].emplace(std::apply(
          [&](auto&... argument) { return replica.forward(std::move(argument)...); }, own));
      outputs[i] = take_tensors(*results[i]);
    });
    Result result = std::move(*results.front());
    put_tensors(result, gather(outputs, devices_));
    return result;
  }

  /// The module itself.
  Impl& module() const { return *module_; }

 private:
  using Modules = std::vector<std::shared_ptr<torch::nn::Module>>;

  DataParallel(std::shared_ptr<Impl> module, Modules modules, std::vector<at::Device> devices)
      : module_(std::move(module)),
        modules_(std::move(modules)),
        devices_(std::move(devices)),
        replicas_(*module_, pointers(modules_), devices_) {}

  static Modules made(const std::function<std::shared_ptr<Impl>()>& make, size_t count) {
    Modules all;
    for (size_t i = 0; i < count; ++i) all.push_back(make());
    return all;
  }

  static std::vector<torch::nn::Module*> pointers(const Modules& modules) {
    std::vector<torch::nn::Module*> all;
    for (const auto& module : modules) all.push_back(module.get());
    return all;
  }

  std::shared_ptr<Impl> module_;
  Modules modules_;
  std::vector<at::Device> devices_;
  Replicas replicas_;
};

}  // namespace phalanx
