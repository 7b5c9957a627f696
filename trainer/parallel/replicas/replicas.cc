// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/replicas.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "trainer/api/modules.h"
#include "trainer/parallel/replicas/own_random_numbers.h"
#include "trainer/parallel/replicas/replica_threads.h"

namespace phalanx {
namespace {

// The gradients of a parameter's replicas, in their order, become one of the parameter itself.
// LibTorch's own (ReduceAdd of torch/nn/parallel/data_parallel.h) fails where the first replica
// does not use the parameter.
class SumOfReplicas : public torch::autograd::Node {
 public:
  explicit SumOfReplicas(const at::Tensor& original)
      : Node(torch::autograd::collect_next_edges(original)), device_(original.device()) {}

  std::string name() const override { return "SumOfReplicas"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    at::Tensor sum;
    for (const at::Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;
      const at::Tensor here = gradient.to(device_);
      sum = sum.defined() ? sum.add(here) : here;
    }
    return {sum};
  }

  at::Device device_;
};

// A device of a type without a number is any of that type, and there is one CPU.
bool is_same_place(at::Device tensor, at::Device device) {
  return tensor.type() == device.type() &&
         (device.is_cpu() || !device.has_index() || tensor.index() == device.index());
}

// A change of the original in place between a forward pass and its backward pass is found in the
// replica as in the original.
void share_version(const at::Tensor& replica, const at::Tensor& original) {
  replica.unsafeGetTensorImpl()->set_version_counter(
      original.unsafeGetTensorImpl()->version_counter());
}

void require_alike(const modules::NamedTensors& original, const modules::NamedTensors& replica,
                   std::string_view what) {
  bool are_alike = original.size() == replica.size();
  for (size_t i = 0; are_alike && i < original.size(); ++i) {
    const auto& [name, tensor] = original[i];
    const auto& [other_name, other] = replica[i];
    are_alike = name == other_name && tensor.defined() == other.defined() &&
                (!tensor.defined() || tensor.sizes() == other.sizes());
  }
  if (are_alike) return;
  throw std::invalid_argument(fmt::format(
      "a replica of the model has other {} than the model: build it as the model is built", what));
}

// For each place the first one that holds the same tensor: all of them where nothing is shared.
std::vector<size_t> first_places(const modules::NamedTensors& tensors) {
  std::vector<size_t> places;
  std::unordered_map<const at::TensorImpl*, size_t> seen;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i].second;
    places.push_back(
        tensor.defined() ? seen.try_emplace(tensor.unsafeGetTensorImpl(), i).first->second : i);
  }
  return places;
}

// A tensor that the original has under two names gets its values under the first one only, and so
// must be one tensor in the replica too.
void require_same_sharing(const modules::NamedTensors& original,
                          const modules::NamedTensors& replica) {
  const std::vector<size_t> places = first_places(original);
  const std::vector<size_t> other_places = first_places(replica);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] == other_places[i]) continue;
    const bool is_shared = places[i] != i;
    throw std::invalid_argument(
        fmt::format("'{}' and '{}' are one tensor in {} alone: clones do not keep tied weights; "
                    "give a function "
                    "that builds a replica as the model is built",
                    original[is_shared ? places[i] : other_places[i]].first, original[i].first,
                    is_shared ? "the model" : "a replica"));
  }
}

// A graph of a replica goes back to the original by the replica's own parameters.
void require_own(const modules::NamedTensors& original, const modules::NamedTensors& replica) {
  for (size_t i = 0; i < original.size(); ++i) {
    const at::Tensor& tensor = original[i].second;
    if (!tensor.defined() || !tensor.is_same(replica[i].second)) continue;
    throw std::invalid_argument(fmt::format(
        "a replica has the model's own '{}': build it with tensors of its own", original[i].first));
  }
}

// What the replicas of the first device hold is the original's, so that it must be there.
void require_on(const modules::NamedTensors& tensors, at::Device device) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || is_same_place(tensor.device(), device)) continue;
    throw std::invalid_argument(
        fmt::format("the first of the devices is {}, and the model's '{}' is on {}: name the "
                    "model's device first, or bring the model there",
                    device.str(), name, tensor.device().str()));
  }
}

void require_devices(const std::vector<at::Device>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    // Two threads would draw from one generator, in no order.
    if (devices[i].is_cpu() || std::count(devices.begin(), devices.end(), devices[i]) == 1)
      continue;
    throw std::invalid_argument(
        fmt::format("{} is named twice for replicas: name each GPU once", devices[i].str()));
  }
}

void require_counterparts(const modules::NamedModules& original,
                          const modules::NamedModules& replica) {
  bool are_alike = original.size() == replica.size();
  for (size_t i = 0; are_alike && i < original.size(); ++i) {
    are_alike = original[i].first == replica[i].first;
  }
  if (are_alike) return;
  throw std::invalid_argument(
      "a replica of the model has other modules than the model: build it as the model is built");
}

// Each tensor of the original once, where several modules share it.
template <class Placed>
std::vector<Placed> placed(const modules::NamedTensors& original,
                           const std::vector<modules::NamedTensors>& replicas) {
  std::vector<Placed> all;
  std::unordered_set<const at::TensorImpl*> seen;
  for (size_t i = 0; i < original.size(); ++i) {
    const at::Tensor& tensor = original[i].second;
    if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    Placed one{.original = tensor};
    for (const auto& replica : replicas) one.replicas.push_back(replica[i].second);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Replicas::Replicas(torch::nn::Module& original, const std::vector<torch::nn::Module*>& replicas,
                   std::vector<at::Device> devices)
    : devices_(std::move(devices)) {
  if (replicas.empty() || replicas.size() != devices_.size()) {
    throw std::invalid_argument(
        fmt::format("{} replicas of a model for {} devices", replicas.size(), devices_.size()));
  }
  require_devices(devices_);
  const auto parameters = modules::named_parameters(original);
  const auto buffers = modules::named_buffers(original);
  require_on(parameters, devices_.front());
  require_on(buffers, devices_.front());
  const auto descendants = modules::descendants(original);
  std::vector<modules::NamedTensors> their_parameters;
  std::vector<modules::NamedTensors> their_buffers;
  modules_.push_back({.original = &original, .replicas = replicas});
  for (const auto& [name, module] : descendants) modules_.push_back({.original = module});
  for (torch::nn::Module* const replica : replicas) {
    their_parameters.push_back(modules::named_parameters(*replica));
    their_buffers.push_back(modules::named_buffers(*replica));
    require_alike(parameters, their_parameters.back(), "parameters");
    require_alike(buffers, their_buffers.back(), "buffers");
    require_own(parameters, their_parameters.back());
    require_same_sharing(parameters, their_parameters.back());
    require_same_sharing(buffers, their_buffers.back());
    const auto within = modules::descendants(*replica);
    require_counterparts(descendants, within);
    for (size_t i = 0; i < within.size(); ++i) {
      modules_[i + 1].replicas.push_back(within[i].second);
    }
  }
  OwnRandomNumbers::prepare();
  parameters_ = placed<Placed>(parameters, their_parameters);
  buffers_ = placed<Placed>(buffers, their_buffers);
}

// Without gradients, too: a graph of an earlier pass may still ask a replica for its node.
void Replicas::bind_parameter(const Placed& parameter, size_t count) const {
  const at::Tensor& original = parameter.original;
  const auto sum = original.requires_grad() ? std::make_shared<SumOfReplicas>(original) : nullptr;
  for (size_t i = 0; i < count; ++i) {
    const at::Tensor& replica = parameter.replicas[i];
    replica.set_data(original.detach().to(devices_[i]));
    share_version(replica, original);
    if (sum) {
      torch::autograd::set_history(replica, sum);
    } else {
      if (!replica.is_leaf()) replica.detach_();
      replica.set_requires_grad(false);
    }
  }
}

void Replicas::bind_buffer(const Placed& buffer, size_t count) const {
  const at::Tensor& original = buffer.original;
  buffer.replicas.front().set_data(original.detach());
  share_version(buffer.replicas.front(), original);
  for (size_t i = 1; i < count; ++i) {
    buffer.replicas[i].set_data(
        original.detach().to(devices_[i], /*non_blocking=*/false, /*copy=*/true));
  }
}

void Replicas::bind(size_t count) {
  const at::NoGradGuard no_grad;
  for (const Placed& parameter : parameters_) bind_parameter(parameter, count);
  for (const Placed& buffer : buffers_) bind_buffer(buffer, count);
  for (const Counterparts& each : modules_) {
    const bool is_training = modules::is_training(*each.original);
    for (size_t i = 0; i < count; ++i) {
      if (modules::is_training(*each.replicas[i]) != is_training) {
        modules::set_training(*each.replicas[i], is_training);
      }
    }
  }
}

void Replicas::run(size_t count, const std::function<void(size_t)>& action) {
  bind(count);
  run_in_threads({devices_.data(), count}, action);
}

}  // namespace phalanx
