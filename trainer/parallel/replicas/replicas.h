// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace phalanx {

/// Modules that compute with another one's values, each on its device: torch.nn.parallel.replicate
/// and parallel_apply. Where a replica is on the original's device it has its parameters' memory;
/// replica 0, which is there, also its buffers, so that what it writes to them (running statistics)
/// stays. Gradients of all replicas are added up in their order, and that sum is added to the
/// original's.
class Replicas {
 public:
  /// `replicas`: at least one, built as the original was, with any values; one for each of
  /// `devices`, of which the first is the original's, and none but the CPU is named twice. All
  /// outlive this. Throws std::invalid_argument for other devices, and for a replica whose modules
  /// or tensors have other names or shapes, which does not share tensors as the original does, or
  /// which has parameters of the original itself.
  Replicas(torch::nn::Module& original, const std::vector<torch::nn::Module*>& replicas,
           std::vector<at::Device> devices);

  size_t size() const { return devices_.size(); }
  at::Device device(size_t replica) const { return devices_[replica]; }

  /// Gives the first `count` replicas the original's values and modes (training or evaluation),
  /// and calls `action` for each of them by its number, in a thread of its own; replica 0 on this
  /// thread. There they have this thread's streams, gradient mode and autocast, and random numbers
  /// of their own, whose seeds come from the CPU's generator. Returns when all have ended. Throws
  /// what a replica has thrown, with the replica's number in the message, and messages of further
  /// ones. Not from two threads at once.
  void run(size_t count, const std::function<void(size_t replica)>& action);

 private:
  /// A tensor of the original, and the replicas' in its place.
  struct Placed {
    at::Tensor original;
    std::vector<at::Tensor> replicas;
  };
  /// A module of the original, and the replicas' in its place.
  struct Counterparts {
    torch::nn::Module* original;
    std::vector<torch::nn::Module*> replicas;
  };

  void bind(size_t count);
  void bind_parameter(const Placed& parameter, size_t count) const;
  void bind_buffer(const Placed& buffer, size_t count) const;

  std::vector<at::Device> devices_;
  std::vector<Placed> parameters_;
  std::vector<Placed> buffers_;
  std::vector<Counterparts> modules_;
};

}  // namespace phalanx
