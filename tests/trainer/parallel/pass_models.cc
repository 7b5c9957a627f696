// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/parallel/pass_models.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "trainer/api/unit.h"

namespace phalanx {
namespace {

using fsdp::testing::kWidth;

class NormedLayerImpl : public torch::nn::Module, public Unit {
 public:
  NormedLayerImpl() {
    layer_ = register_module("layer", torch::nn::Linear(kWidth, kWidth));
    norm_ = register_module("norm", torch::nn::BatchNorm1d(kWidth));
  }

  at::Tensor forward(const at::Tensor& rows) { return norm_(layer_(rows)).tanh(); }

 private:
  torch::nn::Linear layer_{nullptr};
  torch::nn::BatchNorm1d norm_{nullptr};
};
UNIT(NormedLayer);

class BatchNormedModule : public torch::nn::Module {
 public:
  BatchNormedModule() {
    first_ = register_module("first", NormedLayer());
    second_ = register_module("second", torch::nn::Linear(kWidth, 3));
  }

  at::Tensor loss(const at::Tensor& rows) { return second_(first_(rows)).square().mean(); }

 private:
  NormedLayer first_{nullptr};
  torch::nn::Linear second_{nullptr};
};

class BranchImpl : public torch::nn::Module, public Unit {
 public:
  BranchImpl() { layer_ = register_module("layer", torch::nn::Linear(kWidth, 5)); }

  at::Tensor forward(const at::Tensor& rows) { return layer_(rows).tanh(); }

 private:
  torch::nn::Linear layer_{nullptr};
};
UNIT(Branch);

class ForkedModule : public torch::nn::Module {
 public:
  ForkedModule() {
    left = register_module("left", Branch());
    right = register_module("right", Branch());
  }

  Branch left{nullptr}, right{nullptr};
};

}  // namespace

BatchNormed::BatchNormed() : AnyModel(std::make_unique<BatchNormedModule>()) {}

at::Tensor BatchNormed::loss(const at::Tensor& rows) { return as<BatchNormedModule>().loss(rows); }

Forked::Forked() : AnyModel(std::make_unique<ForkedModule>()) {}

at::Tensor Forked::loss_of_left(const at::Tensor& rows) {
  return as<ForkedModule>().left(rows).square().mean();
}

at::Tensor Forked::loss_of_right(const at::Tensor& rows) {
  return as<ForkedModule>().right(rows).square().mean();
}

}  // namespace phalanx
