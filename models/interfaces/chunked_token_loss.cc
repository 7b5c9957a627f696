// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/chunked_token_loss.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The head's gradient in a chunk sums states times factors in [-1, 1]. 1,024 places keep it below
// float16's 65,504 while states are below 63.
constexpr int64_t kMostInHalf = 1024;

// As autocast chooses for a product. Its own casts are not used: it would keep one that is made
// without gradients, and give it to the model's other products with this matrix.
at::ScalarType compute_dtype(const at::Tensor& states) {
  const c10::DeviceType device = states.device().type();
  const bool is_cast =
      at::autocast::is_autocast_enabled(device) && states.scalar_type() != at::kDouble;
  return is_cast ? at::autocast::get_autocast_dtype(device) : states.scalar_type();
}

// sum += a · b. In place where they are of one dtype: a product of 16 bits is added to float32.
void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else {
    sum.add_(at::mm(a, b));
  }
}

// Losses of places, and the gradients of their sum.
class Chunks {
 public:
  Chunks(const at::Tensor& states, const at::Tensor& head, const at::Tensor& targets,
         bool with_gradients)
      : dtype_(compute_dtype(states)),
        states_(states.to(dtype_)),
        head_(head.to(dtype_)),
        targets_(targets) {
    const at::ScalarType accumulation_dtype = at::toOpMathType(dtype_);
    losses_ = at::empty(targets.sizes(), states.options().dtype(accumulation_dtype));
    if (with_gradients && states.requires_grad()) states_gradient_ = at::empty_like(states_);
    if (with_gradients && head.requires_grad()) {
      head_gradient_ = at::zeros_like(head_, head_.options().dtype(accumulation_dtype));
    }
  }

  void compute(int64_t chunk) {
    if (dtype_ == at::kHalf) chunk = std::min(chunk, kMostInHalf);
    for (int64_t begin = 0; begin < targets_.size(0); begin += chunk) {
      compute(begin, std::min(chunk, targets_.size(0) - begin));
    }
  }

  /// Mean over places; 0 if there are none.
  at::Tensor mean_loss() const { return losses_.numel() > 0 ? losses_.mean() : losses_.sum(); }
  /// Undefined if not required.
  const at::Tensor& states_gradient() const { return states_gradient_; }
  const at::Tensor& head_gradient() const { return head_gradient_; }

 private:
  void compute(int64_t begin, int64_t count) {
    const at::Tensor states = states_.narrow(0, begin, count);
    const at::Tensor targets = targets_.narrow(0, begin, count).unsqueeze(1);
    at::Tensor logits = at::mm(states, head_.t());
    at::Tensor log_probabilities = at::log_softmax(logits, 1, losses_.scalar_type());
    logits.reset();
    losses_.narrow(0, begin, count).copy_(log_probabilities.gather(1, targets).squeeze(1).neg());
    if (!states_gradient_.defined() && !head_gradient_.defined()) return;
    // Of the losses' sum with respect to logits: the probabilities, less 1 at the target.
    const at::Tensor gradient = log_probabilities.exp_().scatter_(1, targets, -1, "add").to(dtype_);
    if (states_gradient_.defined()) {
      states_gradient_.narrow(0, begin, count).copy_(at::mm(gradient, head_));
    }
    if (head_gradient_.defined()) add_product(head_gradient_, gradient.t(), states);
  }

  at::ScalarType dtype_;
  at::Tensor states_;
  at::Tensor head_;
  at::Tensor targets_;
  at::Tensor losses_;
  at::Tensor states_gradient_;
  at::Tensor head_gradient_;
};

class ChunkedTokenLoss : public torch::autograd::Function<ChunkedTokenLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& states,
                            const at::Tensor& head, const at::Tensor& targets, int64_t chunk) {
    Chunks chunks(states, head, targets, /*with_gradients=*/true);
    chunks.compute(chunk);
    // Not by save_for_backward: they are multiplied in place, and no hook may move them meanwhile.
    context->saved_data["states"] = chunks.states_gradient();
    context->saved_data["head"] = chunks.head_gradient();
    context->saved_data["places"] = targets.size(0);
    return chunks.mean_loss();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw std::logic_error("a loss in chunks has no second derivative: set its chunk to 0");
    }
    const auto saved = std::exchange(context->saved_data, {});
    if (saved.empty()) {
      throw std::logic_error(
          "the gradients of a loss in chunks have been given away: for a second backward pass set "
          "its chunk to 0");
    }
    const int64_t places = std::max<int64_t>(saved.at("places").toInt(), 1);
    const at::Tensor factor = gradients.front() / places;
    const auto scaled = [&](const char* name) {
      const at::Tensor& sum = saved.at(name).toTensor();
      return sum.defined() ? sum.to(factor.scalar_type()).mul_(factor) : sum;
    };
    return {scaled("states"), scaled("head"), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                              const at::Tensor& targets, int64_t chunk) {
  if (at::GradMode::is_enabled() && (states.requires_grad() || head.requires_grad())) {
    return ChunkedTokenLoss::apply(states, head, targets, chunk);
  }
  Chunks chunks(states, head, targets, /*with_gradients=*/false);
  chunks.compute(chunk);
  return chunks.mean_loss();
}

}  // namespace phalanx
