// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace phalanx::fsdp {

/// A forward pass as its backward passes know it.
struct ForwardPass {
  std::vector<std::size_t> calls;  ///< The units that it called with gradients, by number.
  std::vector<int64_t> versions;   ///< Of each unit's weights when it began.
  /// Places of its graph, which are there as long as that is.
  std::vector<std::weak_ptr<torch::autograd::Node>> nodes;

  /// Notes what has computed the tensor.
  void add_node_of(const at::Tensor& tensor);
  /// Whether a part of its graph is still there: a backward pass of one of its results may leave
  /// that of another.
  bool has_graph() const;
};

/// The forward passes whose backward pass may come.
class OpenPasses {
 public:
  /// Another one begins.
  std::shared_ptr<ForwardPass> begin();
  /// Those that the backward pass which runs now goes through, in their order; `first`: one of
  /// them.
  std::vector<std::shared_ptr<ForwardPass>> in_backward(const std::shared_ptr<ForwardPass>& first);

 private:
  std::vector<std::shared_ptr<ForwardPass>> passes_;
};

}  // namespace phalanx::fsdp
