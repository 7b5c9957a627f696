// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/parallel/fsdp/models.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <utility>

#include "trainer/api/unit.h"

namespace phalanx::fsdp::testing {
namespace {

using torch::nn::Module;

class BlockImpl : public Module, public Unit {
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
class NestImpl : public Module, public Unit {
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

class NetModule : public Module {
 public:
  NetModule() {
    embedding_ = register_parameter("embedding", torch::empty({kWidth, kInputs}));
    scale_ = register_parameter("scale", torch::ones({}));
    frozen_ = register_parameter("frozen", torch::empty({kWidth}), /*requires_grad=*/false);
    shift_ = register_buffer("shift", torch::zeros({kWidth}));
    const at::Tensor tied = torch::empty({kWidth}, torch::requires_grad());
    first = register_module("first", Block(tied));
    second_ = register_module("second", Block(tied));
    nest_ = register_module("nest", Nest());
    optional_ = register_module("optional", Block());
    unused_ = register_module("unused", Block());
    const at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      parameter.copy_(Net::wave(parameter.sizes(), phase++) * 0.5);
    }
    for (auto& parameter : unused_->parameters()) parameter.fill_(1);
  }

  at::Tensor loss(const at::Tensor& input, const Pass& pass) {
    at::Tensor hidden = torch::tanh(torch::matmul(input, embedding_.t())) + frozen_ + shift_;
    hidden = first(hidden);
    if (pass.calls_twice) hidden = first(hidden);
    hidden = nest_(second_(hidden));
    if (pass.with_optional) hidden = optional_(hidden);
    return (torch::matmul(hidden * scale_, embedding_) - input).square().mean();
  }

  Block first{nullptr};

 private:
  at::Tensor embedding_, scale_, frozen_, shift_;
  Block second_{nullptr}, optional_{nullptr}, unused_{nullptr};
  Nest nest_{nullptr};
};

class LoopModule : public Module {
 public:
  LoopModule() { block_ = register_module("block", Block()); }

  at::Tensor loss(const at::Tensor& rows) { return block_(block_(rows)).square().mean(); }

 private:
  Block block_{nullptr};
};

class TwoTypesModule : public Module {
 public:
  TwoTypesModule() {
    float_ = register_module("float", Block());
    double_ = register_module("double", torch::nn::Linear(kWidth, 3));
    double_->to(at::kDouble);
  }

  at::Tensor loss(const at::Tensor& rows) {
    const at::Tensor hidden = float_(rows).to(at::kDouble);
    return torch::linear(hidden, double_->weight, double_->bias).square().mean();
  }

 private:
  Block float_{nullptr};
  torch::nn::Linear double_{nullptr};
};

class StageImpl : public Module, public Unit {
 public:
  StageImpl() {
    for (int i = 0; i < 6; ++i) {
      blocks_.push_back(register_module(std::to_string(i), Block()));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor hidden = input;
    for (auto& block : blocks_) hidden = block(hidden);
    return hidden;
  }

 private:
  std::vector<Block> blocks_;
};
UNIT(Stage);

class StagedModule : public Module {
 public:
  StagedModule() { stage_ = register_module("stage", Stage()); }

  at::Tensor loss(const at::Tensor& rows) { return stage_(rows).square().mean(); }

 private:
  Stage stage_{nullptr};
};

class KeeperImpl : public Module, public Unit {
 public:
  KeeperImpl() { weight_ = register_parameter("weight", torch::ones({3, 2})); }

  at::Tensor forward(const at::Tensor& input) {
    kept_ = {weight_.t(), weight_.detach(), weight_};
    return torch::matmul(input, kept_.front());
  }
  const std::vector<at::Tensor>& kept() const { return kept_; }

 private:
  at::Tensor weight_;
  std::vector<at::Tensor> kept_;
};
UNIT(Keeper);

class KeepersModule : public Module {
 public:
  KeepersModule() {
    first = register_module("first", Keeper());
    second = register_module("second", Keeper());
  }

  at::Tensor loss(const std::function<void()>& between) {
    const at::Tensor input = torch::ones({1, 2}, torch::requires_grad());
    const at::Tensor hidden = first(input);
    between();
    return (hidden + second(input)).sum();
  }

  Keeper first{nullptr}, second{nullptr};
};

class DrawnModule : public Module {
 public:
  DrawnModule() {
    embedding = register_parameter("embedding", torch::randn({13, kWidth}));
    scale = register_buffer("scale", torch::ones({kWidth}));
    register_parameter("frozen", torch::rand({3}), /*requires_grad=*/false);
    auto list = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 3; ++i) list->push_back(Block());
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      if (parameter.dim() >= 2) parameter.normal_(0, 0.02);
    }
  }

  at::Tensor embedding, scale;
};

at::Tensor filled(at::IntArrayRef shape) { return torch::full(shape, 0.01); }

class LayerImpl : public Module, public Unit {
 public:
  LayerImpl(int64_t inputs, int64_t outputs, bool has_gain) {
    weight_ = register_parameter("weight", filled({outputs, inputs}));
    bias_ = register_parameter("bias", filled({outputs}));
    if (has_gain) gain_ = register_parameter("gain", filled({outputs}), /*requires_grad=*/false);
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor output = torch::tanh(torch::linear(input, weight_, bias_));
    return gain_.defined() ? output * gain_ : output;
  }

 private:
  at::Tensor weight_, bias_, gain_;
};
UNIT(Layer);

class StackModule : public Module {
 public:
  StackModule(std::span<const int64_t> widths, int64_t frozen_layer) : inputs_(widths.front()) {
    into_ = register_parameter("into", filled({widths.front()}));
    out_ = register_parameter("out", filled({widths.back()}));
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      const bool has_gain = static_cast<int64_t>(i) == frozen_layer;
      layers_.push_back(
          register_module(std::to_string(i), Layer(widths[i], widths[i + 1], has_gain)));
    }
  }

  at::Tensor loss() {
    at::Tensor hidden = filled({1, inputs_}) * into_;
    for (auto& layer : layers_) hidden = layer(hidden);
    return (hidden * out_).sum();
  }

 private:
  int64_t inputs_;
  at::Tensor into_, out_;
  std::vector<Layer> layers_;
};

}  // namespace

AnyModel::AnyModel(std::unique_ptr<Module> module) : module_(std::move(module)) {}
AnyModel::~AnyModel() = default;

std::vector<at::Tensor> AnyModel::parameters() const { return module_->parameters(); }

torch::OrderedDict<std::string, at::Tensor> AnyModel::named_parameters() const {
  return module_->named_parameters();
}

void AnyModel::register_parameter(const std::string& name, const at::Tensor& tensor) {
  module_->register_parameter(name, tensor);
}

void AnyModel::to(at::ScalarType dtype) { module_->to(dtype); }

void AnyModel::zero_grad() { module_->zero_grad(); }

Net::Net() : AnyModel(std::make_unique<NetModule>()) {}

at::Tensor Net::wave(at::IntArrayRef shape, double phase) {
  return torch::sin(torch::arange(c10::multiply_integers(shape), torch::kDouble) * 0.37 + phase)
      .view(shape);
}

at::Tensor Net::loss(const at::Tensor& input, const Pass& pass) {
  return as<NetModule>().loss(input, pass);
}

at::Tensor Net::forward_of_first(const at::Tensor& input) {
  return as<NetModule>().first->forward(input);
}

Loop::Loop() : AnyModel(std::make_unique<LoopModule>()) {}

at::Tensor Loop::loss(const at::Tensor& rows) { return as<LoopModule>().loss(rows); }

TwoTypes::TwoTypes() : AnyModel(std::make_unique<TwoTypesModule>()) {}

at::Tensor TwoTypes::loss(const at::Tensor& rows) { return as<TwoTypesModule>().loss(rows); }

Staged::Staged() : AnyModel(std::make_unique<StagedModule>()) {}

at::Tensor Staged::loss(const at::Tensor& rows) { return as<StagedModule>().loss(rows); }

Keepers::Keepers() : AnyModel(std::make_unique<KeepersModule>()) {}

at::Tensor Keepers::loss(const std::function<void()>& between) {
  return as<KeepersModule>().loss(between);
}

const std::vector<at::Tensor>& Keepers::kept_by_first() const {
  return as<KeepersModule>().first->kept();
}

const std::vector<at::Tensor>& Keepers::kept_by_second() const {
  return as<KeepersModule>().second->kept();
}

Drawn::Drawn() : AnyModel(std::make_unique<DrawnModule>()) {}

const at::Tensor& Drawn::embedding() const { return as<DrawnModule>().embedding; }

const at::Tensor& Drawn::scale() const { return as<DrawnModule>().scale; }

Stack::Stack(std::span<const int64_t> widths, int64_t frozen_layer)
    : AnyModel(std::make_unique<StackModule>(widths, frozen_layer)) {}

at::Tensor Stack::loss() { return as<StackModule>().loss(); }

}  // namespace phalanx::fsdp::testing
