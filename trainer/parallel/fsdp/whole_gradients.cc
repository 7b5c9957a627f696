// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/whole_gradients.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "trainer/parallel/fsdp/module_views.h"

namespace phalanx::fsdp {

WholeGradients::WholeGradients(const std::vector<NamedParameter>& parameters,
                               const FlatLayout& layout, const FlatTypes& types,
                               std::shared_ptr<BufferPool> pool)
    : parameters_(parameters),
      layout_(layout),
      options_(types.whole().dtype(types.reduce)),
      adds_as_autograd_(types.reduce == types.compute),
      pool_(std::move(pool)),
      touched_(parameters.size()),
      used_(parameters.size()) {
  const bool need_gradients = parameters.front().tensor.requires_grad();
  accumulators_.resize(need_gradients ? parameters.size() : 0);
}

void WholeGradients::watch() {
  for (std::size_t i = 0; i < accumulators_.size(); ++i) watch(i);
}

// The graph may outlive this.
void WholeGradients::watch(std::size_t i) {
  using torch::autograd::variable_list;
  const at::Tensor& parameter = parameters_[i].tensor;
  if (accumulators_[i]) torch::autograd::impl::set_grad_accumulator(parameter, {});
  accumulators_[i] = torch::autograd::impl::grad_accumulator(parameter);
  accumulators_[i]->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [self = std::weak_ptr(self_), i](const variable_list& outputs, const variable_list&) {
        if (const auto alive = self.lock()) (*alive)->accumulate(i);
        return outputs;
      }));
}

void WholeGradients::part_uses() {
  if (!adds_as_autograd_) return;
  for (std::size_t i = 0; i < accumulators_.size(); ++i) {
    const bool is_used = accumulators_[i].use_count() > 1;
    const bool has_hooks = !torch::autograd::impl::hooks(parameters_[i].tensor).empty();
    if (is_used && !touched_[i] && !has_hooks) watch(i);
  }
}

void WholeGradients::accumulate(std::size_t i) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
  if (!gradient.defined()) return;
  if (!buffer_.defined()) allocate();
  const at::Tensor place = place_in(buffer_, layout_, i, parameters_[i].tensor.sizes());
  if (touched_[i]) {
    place.add_(gradient);
  } else {
    place.copy_(gradient);
  }
  touched_[i] = used_[i] = true;
  gradient.reset();
}

void WholeGradients::allocate() { buffer_ = pool_->empty(layout_.size(), options_); }

void WholeGradients::forget_uses() { std::fill(used_.begin(), used_.end(), false); }

at::Tensor WholeGradients::take() {
  if (!buffer_.defined()) {
    allocate();
    buffer_.zero_();
  } else {
    const auto zero = [&](const Range& range) {
      buffer_.narrow(0, range.begin, range.size()).zero_();
    };
    for (const Range& gap : layout_.gaps()) zero(gap);
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      if (!touched_[i]) zero(layout_.place(i));
    }
  }
  std::fill(touched_.begin(), touched_.end(), false);
  return std::exchange(buffer_, at::Tensor());
}

void WholeGradients::reset() {
  buffer_.reset();
  std::fill(touched_.begin(), touched_.end(), false);
  forget_uses();
  for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

}  // namespace phalanx::fsdp
