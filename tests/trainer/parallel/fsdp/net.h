#pragma once

#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/core/unit.h"

/// A small model with everything that sharding finds hard: nested units, a unit that is called
/// twice, one that no step uses and one that only some do, tied, frozen, scalar and empty
/// parameters, sizes that divide by nothing.
namespace phalanx::sharding::testing {

constexpr int64_t kInputs = 5;
constexpr int64_t kWidth = 7;

class BlockImpl : public torch::nn::Module, public Unit {
 public:
  explicit BlockImpl(const at::Tensor& tied = {}) {
    inner_ = register_module("inner", torch::nn::Linear(kWidth, 11));
    outer_ = register_module("outer", torch::nn::Linear(11, kWidth));
    if (tied.defined()) tied_ = register_parameter("tied", tied);
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor hidden = torch::tanh(torch::linear(input, inner_->weight, inner_->bias));
    hidden = torch::linear(hidden, outer_->weight, outer_->bias);
    if (tied_.defined()) hidden = hidden * tied_;
    return input + hidden;
  }

 private:
  torch::nn::Linear inner_{nullptr}, outer_{nullptr};
  at::Tensor tied_;
};
UNIT(Block);

/// A unit around a unit.
class NestImpl : public torch::nn::Module, public Unit {
 public:
  NestImpl() {
    block_ = register_module("block", Block());
    gain_ = register_parameter("gain", torch::ones({kWidth}));
    empty_ = register_parameter("empty", torch::zeros({0, 3}));
  }

  at::Tensor forward(const at::Tensor& input) {
    return block_(input * gain_) * gain_ + empty_.sum();
  }

 private:
  Block block_{nullptr};
  at::Tensor gain_, empty_;
};
UNIT(Nest);

/// What a forward pass does.
struct Pass {
  bool with_optional = true;  ///< Calls the unit that only some steps use.
  bool calls_twice = true;
};

class Net : public torch::nn::Module {
 public:
  Net() {
    embedding_ = register_parameter("embedding", torch::empty({kWidth, kInputs}));
    scale_ = register_parameter("scale", torch::ones({}));
    frozen_ = register_parameter("frozen", torch::empty({kWidth}), /*requires_grad=*/false);
    shift_ = register_buffer("shift", torch::zeros({kWidth}));
    const at::Tensor tied = torch::empty({kWidth}, torch::requires_grad());
    first_ = register_module("first", Block(tied));
    second_ = register_module("second", Block(tied));
    nest_ = register_module("nest", Nest());
    optional_ = register_module("optional", Block());
    unused_ = register_module("unused", Block());
    const at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      parameter.copy_(wave(parameter.sizes(), phase++) * 0.5);
    }
    for (auto& parameter : unused_->parameters()) parameter.fill_(1);
  }

  /// Values that are the same everywhere.
  static at::Tensor wave(at::IntArrayRef shape, double phase) {
    return torch::sin(torch::arange(c10::multiply_integers(shape), torch::kDouble) * 0.37 + phase)
        .view(shape);
  }

  /// [rows, kInputs] to a loss.
  at::Tensor loss(const at::Tensor& input, const Pass& pass) {
    at::Tensor hidden = torch::tanh(torch::matmul(input, embedding_.t())) + frozen_ + shift_;
    hidden = first_(hidden);
    if (pass.calls_twice) hidden = first_(hidden);
    hidden = nest_(second_(hidden));
    if (pass.with_optional) hidden = optional_(hidden);
    return (torch::matmul(hidden * scale_, embedding_) - input).square().mean();
  }

  Block& first() { return first_; }

 private:
  at::Tensor embedding_, scale_, frozen_, shift_;
  Block first_{nullptr}, second_{nullptr}, optional_{nullptr}, unused_{nullptr};
  Nest nest_{nullptr};
};

}  // namespace phalanx::sharding::testing
