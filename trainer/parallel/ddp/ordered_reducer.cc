// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/ordered_reducer.h"

#include <mutex>

namespace phalanx {

void OrderedReducer::use_order() {
  if (should_rebuild_buckets() && order_.empty()) order_ = rebuilt_param_indices_;
  rebuild_buckets();
}

void OrderedReducer::follow(const std::vector<size_t>& order) {
  if (!should_rebuild_buckets() || order.size() != params_.size()) return;
  for (const size_t parameter : order) push_rebuilt_params(parameter);
  use_order();
}

void OrderedReducer::expect_nothing() {
  const std::lock_guard lock(mutex_);
  expect_autograd_hooks_ = false;
}

// What autograd would call for each parameter, called for all: the collectives are those of a pass
// whose gradients are reduced as they come.
void OrderedReducer::reduce_all() {
  use_order();  // an order is noted once
  prepare_for_backward({});
  has_marked_unused_parameters_ = true;  // a parameter is unused that has no gradient
  for (size_t i = params_.size(); i > 0; --i) autograd_hook(i - 1);
}

void OrderedReducer::reduce_zeros(bool finds_unused) {
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> reductions;
  for (c10d::GradBucket& bucket : get_grad_buckets(/*return_zero_tensors=*/true)) {
    reductions.push_back(run_comm_hook(bucket));
  }
  for (const auto& reduction : reductions) reduction->waitAndThrow();
  if (finds_unused) {
    std::vector<at::Tensor> used{get_local_used_map_on_device()};
    process_group_->allreduce(used)->wait();
  }
  push_rebuilt_params_for_all_indices();
}

std::vector<size_t> OrderedReducer::without_gradient() const {
  std::vector<size_t> places;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (!params_[i].grad().defined()) places.push_back(i);
  }
  return places;
}

}  // namespace phalanx
