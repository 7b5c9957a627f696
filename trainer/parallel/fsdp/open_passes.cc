// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/open_passes.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <unordered_set>

namespace phalanx::fsdp {
namespace {

using Node = torch::autograd::Node;

bool is_any_in(const ForwardPass& pass, const std::unordered_set<Node*>& nodes) {
  return std::ranges::any_of(pass.nodes, [&](const std::weak_ptr<Node>& weak) {
    const auto node = weak.lock();
    return node && nodes.contains(node.get());
  });
}

}  // namespace

void ForwardPass::add_node_of(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.grad_fn()) nodes.push_back(tensor.grad_fn());
}

bool ForwardPass::has_graph() const {
  return std::ranges::any_of(nodes, [](const auto& node) { return !node.expired(); });
}

std::shared_ptr<ForwardPass> OpenPasses::begin() {
  std::erase_if(passes_, [](const auto& pass) { return !pass->has_graph(); });
  passes_.push_back(std::make_shared<ForwardPass>());
  return passes_.back();
}

std::vector<std::shared_ptr<ForwardPass>> OpenPasses::in_backward(
    const std::shared_ptr<ForwardPass>& first) {
  const auto* const nodes = torch::autograd::get_current_graph_task_nodes_in_graph();
  std::vector<std::shared_ptr<ForwardPass>> found;
  for (const auto& pass : passes_) {
    const bool takes_part = pass == first || (nodes != nullptr && is_any_in(*pass, *nodes));
    if (takes_part) found.push_back(pass);
  }
  if (std::ranges::find(found, first) == found.end()) found.push_back(first);
  return found;
}

}  // namespace phalanx::fsdp
