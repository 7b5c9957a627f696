// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/backward_passes.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/parallel/ddp/ordered_reducer.h"
#include "trainer/parallel/ddp/unused_parameters.h"

namespace phalanx {

BackwardPasses::BackwardPasses(std::shared_ptr<OrderedReducer> reducer, Rules rules)
    : reducer_(std::move(reducer)), rules_(std::move(rules)) {}

bool BackwardPasses::begin(bool synchronize) {
  std::erase_if(passes_, [](const std::weak_ptr<Pass>& weak) {
    const auto pass = weak.lock();
    return !pass || pass->is_over;
  });
  const bool is_alone = passes_.empty();
  newest_ = std::make_shared<Pass>();
  passes_.push_back(newest_);
  synchronize_ = synchronize;
  prepared_.reset();
  if (is_alone && synchronize) {
    prepared_ = newest_;
    return true;
  }
  reducer_->expect_nothing();
  return false;
}

void BackwardPasses::watch(const std::vector<at::Tensor>& outputs) {
  const auto pass = std::exchange(newest_, nullptr);
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.grad_fn()) continue;
    output.register_hook([weak = weak_from_this(), pass](const at::Tensor&) {
      if (const auto passes = weak.lock()) passes->on_gradient(pass);
    });
  }
}

void BackwardPasses::on_gradient(const std::shared_ptr<Pass>& pass) {
  if (!torch::autograd::get_current_graph_task_keep_graph()) pass->is_over = true;
  const int task = torch::autograd::get_current_graph_task_id();
  if (std::exchange(task_, task) == task) return;
  ++count_;
  const bool is_prepared = prepared_.lock() == pass;
  prepared_.reset();
  if (is_prepared) return;
  reducer_->expect_nothing();
  if (!synchronize_) return;
  if (rules_.is_static) {
    throw std::logic_error(
        "parallel.ddp.static_graph is for steps that reduce the gradients of one backward pass of "
        "one forward pass: set it to false for two forward passes before a backward one, or two "
        "backward passes of one graph");
  }
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this()] {
    if (const auto passes = weak.lock()) passes->reduce();
  });
}

void BackwardPasses::reduce() {
  if (!rules_.finds_unused) {
    const std::vector<size_t> unused = reducer_->without_gradient();
    if (!unused.empty()) throw std::logic_error(unused_parameters_text(rules_.names, unused));
  }
  reducer_->reduce_all();
}

}  // namespace phalanx
