// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/chunked_token_loss.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// On the CPU, as products on CUDA are added up in float32: the head's gradient in a chunk sums
// states times factors in [-1, 1], little more with a z-loss. 1,024 places keep it below float16's
// 65,504 while states are below 63.
constexpr int64_t kMostInHalf = 1024;

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// As autocast chooses for a product. Its own casts are not used: it would keep one that is made
// without gradients, and give it to the model's other products with this matrix.
at::ScalarType compute_dtype(const at::Tensor& states) {
  const c10::DeviceType device = states.device().type();
  const bool is_cast =
      at::autocast::is_autocast_enabled(device) && states.scalar_type() != at::kDouble;
  return is_cast ? at::autocast::get_autocast_dtype(device) : states.scalar_type();
}

// a · b, in `dtype` where the device adds up in it: cuBLAS then writes its float32 sums of products
// of 16 bits as they are.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  return a.is_cuda() && a.scalar_type() != dtype ? at::mm(a, b, dtype) : at::mm(a, b);
}

// sum += a · b. In place where the device can; else a product of 16 bits is added to float32.
void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else if (a.is_cuda()) {
    at::addmm_out(sum, sum, a, b, sum.scalar_type());
  } else {
    sum.add_(at::mm(a, b));
  }
}

// Rows of zeros below a matrix, up to `rows`.
at::Tensor padded(const at::Tensor& matrix, int64_t rows, at::ScalarType dtype) {
  const int64_t known = matrix.size(0);
  if (rows == known) return matrix.to(dtype);
  at::Tensor result = at::empty({rows, matrix.size(1)}, matrix.options().dtype(dtype));
  result.narrow(0, 0, known).copy_(matrix);
  result.narrow(0, known, rows - known).zero_();
  return result;
}

// eˣ in `dtype`; x is used up. On a GPU in one pass, where the CPU's kernel needs memory for a
// copy.
at::Tensor exponentials(const at::Tensor& x, at::ScalarType dtype) {
  if (x.is_cpu() || x.scalar_type() == dtype) return x.exp_().to(dtype);
  at::Tensor result = at::empty_like(x, x.options().dtype(dtype));
  at::exp_out(result, x);
  return result;
}

// 0 if there are none.
at::Tensor mean_of(const at::Tensor& losses) {
  return losses.numel() > 0 ? losses.mean() : losses.sum();
}

// Losses of places, and the gradients of their sum.
class Chunks {
 public:
  Chunks(const at::Tensor& states, const at::Tensor& head, const at::Tensor& targets,
         int64_t columns, const TokenLossTerms& terms, bool with_gradients)
      : vocabulary_(head.size(0)),
        terms_(terms),
        dtype_(compute_dtype(states)),
        states_(states.to(dtype_)),
        head_(padded(head, columns, dtype_)),
        targets_(targets) {
    const at::ScalarType accumulation_dtype = at::toOpMathType(dtype_);
    losses_ = at::empty(targets.sizes(), states.options().dtype(accumulation_dtype));
    if (terms_.label_smoothing > 0) smoothing_ = at::empty_like(losses_);
    if (terms_.z_loss > 0) z_losses_ = at::empty_like(losses_);
    if (with_gradients && states.requires_grad()) states_gradient_ = at::empty_like(states_);
    if (with_gradients && head.requires_grad()) {
      head_gradient_ = at::zeros_like(head_, head_.options().dtype(accumulation_dtype));
    }
  }

  void compute(int64_t chunk) {
    if (dtype_ == at::kHalf && !states_.is_cuda()) chunk = std::min(chunk, kMostInHalf);
    for (int64_t begin = 0; begin < targets_.size(0); begin += chunk) {
      compute(begin, std::min(chunk, targets_.size(0) - begin));
    }
  }

  /// Means over places.
  TokenLossParts means() const {
    return {.total = mean_of(losses_),
            .label_smoothing = smoothing_.defined() ? mean_of(smoothing_) : at::Tensor(),
            .z_loss = z_losses_.defined() ? mean_of(z_losses_) : at::Tensor()};
  }
  /// Undefined if not required.
  const at::Tensor& states_gradient() const { return states_gradient_; }
  at::Tensor head_gradient() const {
    return head_gradient_.defined() ? head_gradient_.narrow(0, 0, vocabulary_) : head_gradient_;
  }

 private:
  void compute(int64_t begin, int64_t count) {
    const at::Tensor states = states_.narrow(0, begin, count);
    const at::Tensor targets = targets_.narrow(0, begin, count).unsqueeze(1);
    at::Tensor logits = logits_of(states);
    at::Tensor log_probabilities = at::log_softmax(logits, 1, losses_.scalar_type());
    const at::Tensor of_targets = log_probabilities.gather(1, targets);
    at::Tensor log_sums;
    if (terms_.z_loss > 0) log_sums = logits.gather(1, targets).sub(of_targets);
    logits.reset();
    const at::Tensor losses = losses_.narrow(0, begin, count);
    losses.copy_(of_targets.squeeze(1).neg());
    add_terms(begin, log_probabilities, log_sums);
    if (!states_gradient_.defined() && !head_gradient_.defined()) return;
    const at::Tensor gradient =
        terms_.any()
            ? gradient_with_terms(std::move(log_probabilities), targets, of_targets, log_sums)
            : plain_gradient(std::move(log_probabilities), targets, of_targets);
    if (states_gradient_.defined()) {
      at::Tensor place = states_gradient_.narrow(0, begin, count);
      at::mm_out(place, gradient, head_);
    }
    if (head_gradient_.defined()) add_product(head_gradient_, gradient.t(), states);
  }

  // To the cross-entropies of a chunk that begins at a place.
  void add_terms(int64_t begin, const at::Tensor& log_probabilities, const at::Tensor& log_sums) {
    const int64_t count = log_probabilities.size(0);
    const at::Tensor losses = losses_.narrow(0, begin, count);
    if (smoothing_.defined()) {
      const at::Tensor smoothing = smoothing_.narrow(0, begin, count);
      smoothing.copy_(log_probabilities.narrow(1, 0, vocabulary_).mean(1).neg_());
      smoothing.sub_(losses).mul_(terms_.label_smoothing);
      losses.add_(smoothing);
    }
    if (z_losses_.defined()) {
      const at::Tensor z_losses = z_losses_.narrow(0, begin, count);
      z_losses.copy_(log_sums.squeeze(1).square().mul_(terms_.z_loss));
      losses.add_(z_losses);
    }
  }

  // The gradient of the losses' sum by the logits: the probabilities, less 1 at the target. The
  // logarithms are used up.
  at::Tensor plain_gradient(at::Tensor log_probabilities, const at::Tensor& targets,
                            const at::Tensor& of_targets) const {
    at::Tensor gradient = exponentials(log_probabilities, dtype_);
    return gradient.scatter_(1, targets, of_targets.exp().sub_(1).to(dtype_));
  }

  // The same, of which a term can be smaller than a rounding of the probabilities: 1 + 2 z log Z
  // with z = 1e-4 is 1 in bfloat16. So it is rounded as a whole.
  at::Tensor gradient_with_terms(at::Tensor log_probabilities, const at::Tensor& targets,
                                 const at::Tensor& of_targets, const at::Tensor& log_sums) const {
    at::Tensor gradient = log_probabilities.exp_();
    const at::Tensor at_targets = of_targets.exp();
    if (log_sums.defined()) {
      const at::Tensor factors = log_sums.mul(2 * terms_.z_loss).add_(1);
      gradient.mul_(factors);
      at_targets.mul_(factors);
    }
    const double of_each = terms_.label_smoothing / static_cast<double>(vocabulary_);
    if (of_each > 0) gradient.sub_(of_each);
    at_targets.sub_(1 - terms_.label_smoothing + of_each);
    return gradient.scatter_(1, targets, at_targets).to(dtype_);
  }

  // [places, columns].
  at::Tensor logits_of(const at::Tensor& states) const {
    const at::Tensor logits = product(states, head_.t(), losses_.scalar_type());
    const int64_t beyond = head_.size(0) - vocabulary_;
    if (beyond > 0) logits.narrow(1, vocabulary_, beyond).fill_(kImpossible);
    return logits;
  }

  int64_t vocabulary_;
  TokenLossTerms terms_;
  at::ScalarType dtype_;
  at::Tensor states_;
  at::Tensor head_;  // with rows of zeros up to the columns of logits
  at::Tensor targets_;
  at::Tensor losses_;
  at::Tensor smoothing_;  // what it adds to each loss
  at::Tensor z_losses_;
  at::Tensor states_gradient_;
  at::Tensor head_gradient_;
};

class ChunkedTokenLoss : public torch::autograd::Function<ChunkedTokenLoss> {
 public:
  // The total and, without gradients, the means of the terms that are.
  static variable_list forward(AutogradContext* context, const at::Tensor& states,
                               const at::Tensor& head, const at::Tensor& targets, int64_t chunk,
                               int64_t columns, const TokenLossTerms& terms) {
    Chunks chunks(states, head, targets, columns, terms, /*with_gradients=*/true);
    chunks.compute(chunk);
    // Not by save_for_backward: they are multiplied in place, and no hook may move them meanwhile.
    context->saved_data["states"] = chunks.states_gradient();
    context->saved_data["head"] = chunks.head_gradient();
    context->saved_data["places"] = targets.size(0);
    const auto [total, label_smoothing, z_loss] = chunks.means();
    variable_list outputs{total};
    variable_list others;
    for (const at::Tensor& term : {label_smoothing, z_loss}) {
      if (term.defined()) others.push_back(term);
    }
    context->mark_non_differentiable(others);
    outputs.insert(outputs.end(), others.begin(), others.end());
    return outputs;
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
    return {scaled("states"), scaled("head"), at::Tensor(),
            at::Tensor(),     at::Tensor(),   at::Tensor()};
  }
};

}  // namespace

TokenLossParts chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                                  const at::Tensor& targets, int64_t chunk, int64_t columns,
                                  const TokenLossTerms& terms) {
  if (at::GradMode::is_enabled() && (states.requires_grad() || head.requires_grad())) {
    const variable_list outputs =
        ChunkedTokenLoss::apply(states, head, targets, chunk, columns, terms);
    auto next = outputs.begin();
    const auto take = [&](bool is_there) { return is_there ? *next++ : at::Tensor(); };
    return {.total = take(true),
            .label_smoothing = take(terms.label_smoothing > 0),
            .z_loss = take(terms.z_loss > 0)};
  }
  Chunks chunks(states, head, targets, columns, terms, /*with_gradients=*/false);
  chunks.compute(chunk);
  return chunks.means();
}

at::Tensor chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                              const at::Tensor& targets, int64_t chunk, int64_t columns) {
  return chunked_token_loss(states, head, targets, chunk, columns, TokenLossTerms()).total;
}

at::Tensor chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                              const at::Tensor& targets, int64_t chunk) {
  return chunked_token_loss(states, head, targets, chunk,
                            logit_columns(states.device().type(), head.size(0)));
}

int64_t logit_columns(c10::DeviceType device, int64_t vocabulary) {
  constexpr int64_t kLoaded = 8;  // numbers of 16 bits
  constexpr int64_t kWidth = 64;
  if (device == c10::DeviceType::CPU || vocabulary % kLoaded == 0) return vocabulary;
  return (vocabulary + kWidth - 1) / kWidth * kWidth;
}

}  // namespace phalanx
