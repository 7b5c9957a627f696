// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/data_parallel_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<at::Device> kTwo{at::kCPU, at::kCPU};

class NetImpl : public torch::nn::Cloneable<NetImpl> {
 public:
  NetImpl(double dropout_rate, bool normalizes) : rate_(dropout_rate), normalizes_(normalizes) {
    NetImpl::reset();
  }
  void reset() override {
    first = register_module("first", torch::nn::Linear(4, 3));
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    dropout = register_module("dropout", torch::nn::Dropout(rate_));
    second = register_module("second", torch::nn::Linear(3, 2));
    to(torch::kDouble);
  }

  at::Tensor forward(at::Tensor rows) {
    at::Tensor hidden = first->forward(rows);
    if (normalizes_) hidden = norm->forward(hidden);
    return second->forward(dropout->forward(torch::tanh(hidden)));
  }

  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};

 private:
  double rate_;
  bool normalizes_;
};

at::Tensor rows(int64_t count) {
  return torch::sin(torch::arange(count * 4, torch::kDouble) * 0.7).view({count, 4});
}

std::shared_ptr<NetImpl> net(double dropout = 0, bool normalizes = false) {
  torch::manual_seed(5);
  return std::make_shared<NetImpl>(dropout, normalizes);
}

std::vector<at::Tensor> gradients(NetImpl& module) {
  std::vector<at::Tensor> all;
  for (const auto& parameter : module.parameters()) {
    all.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  }
  module.zero_grad();
  return all;
}

void expect_close(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].defined(), expected[i].defined()) << i;
    if (!found[i].defined()) continue;
    EXPECT_TRUE(torch::allclose(found[i], expected[i], 1e-12, 1e-14)) << i;
  }
}

TEST(DataParallelModule, ResultsAndGradientsAreThoseOfOneDevice) {
  const auto module = net();
  DataParallel<NetImpl> parallel(module, {at::kCPU, at::kCPU, at::kCPU});
  for (const int64_t count : {7, 3, 2, 1}) {
    const at::Tensor expected = module->forward(rows(count));
    expected.square().sum().backward();
    const auto of_one = gradients(*module);
    const at::Tensor found = parallel(rows(count));
    EXPECT_TRUE(torch::allclose(found, expected, 1e-12, 1e-14)) << count;
    found.square().sum().backward();
    expect_close(gradients(*module), of_one);
  }
}

TEST(DataParallelModule, GradientsReachTheInput) {
  const auto module = net();
  DataParallel<NetImpl> parallel(module, kTwo);
  const at::Tensor input = rows(5).requires_grad_();
  parallel(input).square().sum().backward();
  const at::Tensor found = input.grad().clone();
  const at::Tensor again = rows(5).requires_grad_();
  module->forward(again).square().sum().backward();
  EXPECT_TRUE(torch::allclose(found, again.grad(), 1e-12, 1e-14));
}

// As torch.nn.DataParallel has it: each replica normalizes its own part, and what replica 0 writes
// to its buffers stays.
TEST(DataParallelModule, RunningStatisticsAreThoseOfTheFirstPart) {
  const auto module = net(0, /*normalizes=*/true);
  DataParallel<NetImpl> parallel(module, kTwo);
  const auto alone = std::dynamic_pointer_cast<NetImpl>(module->clone());
  const at::Tensor found = parallel(rows(7));
  const at::Tensor first = alone->forward(rows(7).narrow(0, 0, 4));
  EXPECT_TRUE(module->norm->running_mean.equal(alone->norm->running_mean));
  EXPECT_TRUE(module->norm->running_var.equal(alone->norm->running_var));
  EXPECT_EQ(module->norm->num_batches_tracked.item<int64_t>(), 1);
  const at::Tensor second = alone->forward(rows(7).narrow(0, 4, 3));
  EXPECT_TRUE(torch::allclose(found, torch::cat({first, second}), 1e-12, 1e-14));
}

TEST(DataParallelModule, FollowsModesAndWeightsOfTheModule) {
  const auto module = net(0.5, /*normalizes=*/true);
  DataParallel<NetImpl> parallel(module, kTwo);
  parallel(rows(6));
  module->eval();
  EXPECT_TRUE(torch::allclose(parallel(rows(6)), module->forward(rows(6)), 1e-12, 1e-14));
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : module->parameters()) parameter.mul_(2);
  }
  EXPECT_TRUE(torch::allclose(parallel(rows(6)), module->forward(rows(6)), 1e-12, 1e-14));
}

TEST(DataParallelModule, AFrozenParameterHasNoGradient) {
  const auto module = net();
  DataParallel<NetImpl> parallel(module, kTwo);
  parallel(rows(4)).sum().backward();
  EXPECT_TRUE(module->first->weight.grad().defined());
  module->zero_grad();
  module->first->weight.set_requires_grad(false);
  parallel(rows(4)).sum().backward();
  EXPECT_FALSE(module->first->weight.grad().defined());
  EXPECT_TRUE(module->first->bias.grad().defined());
}

TEST(DataParallelModule, TwoForwardPassesMayComeBeforeTheirBackwardPasses) {
  const auto module = net();
  DataParallel<NetImpl> parallel(module, kTwo);
  (module->forward(rows(5)).square().sum() + module->forward(rows(3)).sum()).backward();
  const auto expected = gradients(*module);
  const at::Tensor one = parallel(rows(5)).square().sum();
  const at::Tensor other = parallel(rows(3)).sum();
  {
    const torch::NoGradGuard no_grad;
    parallel(rows(4));
  }
  one.backward();
  other.backward();
  expect_close(gradients(*module), expected);
}

TEST(DataParallelModule, AWeightThatIsChangedBeforeItsBackwardPassIsFound) {
  const auto module = net();
  DataParallel<NetImpl> parallel(module, kTwo);
  const at::Tensor loss = parallel(rows(4)).square().sum();
  {
    const torch::NoGradGuard no_grad;
    module->second->weight.mul_(2);
  }
  try {
    loss.backward();
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("modified by an inplace operation"));
  }
}

TEST(DataParallelModule, ReplicasDrawTheirOwnNumbersAndTheSameAfterASeed) {
  const auto module = net(0.5);
  DataParallel<NetImpl> parallel(module, {at::kCPU, at::kCPU, at::kCPU, at::kCPU});
  const at::Tensor input = torch::ones({32, 4}, torch::kDouble);
  torch::manual_seed(1);
  const at::Tensor found = parallel(input);
  const at::Tensor next = torch::rand({4});
  for (int again = 0; again < 20; ++again) {
    torch::manual_seed(1);
    EXPECT_TRUE(parallel(input).equal(found));
    EXPECT_TRUE(torch::rand({4}).equal(next));
  }
  const auto parts = found.chunk(4);
  EXPECT_FALSE(parts[0].equal(parts[1]));
  EXPECT_FALSE(parts[2].equal(parts[3]));
  EXPECT_FALSE(parallel(input).equal(found));
}

/// Takes and gives values of several types.
class ManyImpl : public torch::nn::Module {
 public:
  struct Given {
    at::Tensor sum;
    std::vector<at::Tensor> all;
    double factor;
    auto tensors() { return std::tie(sum, all); }
  };
  Given forward(std::tuple<at::Tensor, std::optional<at::Tensor>> rows, double factor) {
    const at::Tensor& first = std::get<0>(rows);
    at::Tensor sum = first * factor;
    if (std::get<1>(rows)) sum = sum + *std::get<1>(rows);
    return {.sum = sum, .all = {first, sum.sum()}, .factor = factor};
  }
};

TEST(DataParallelModule, ArgumentsAndResultsAreThoseOfAUnit) {
  const auto make = [] { return std::make_shared<ManyImpl>(); };
  DataParallel<ManyImpl> parallel(make(), make, kTwo);
  const at::Tensor ones = torch::ones({3, 2});
  const auto found =
      parallel(std::tuple<at::Tensor, std::optional<at::Tensor>>(ones, ones * 4), 2.0);
  EXPECT_TRUE(found.sum.equal(ones * 6));
  EXPECT_TRUE(found.all.front().equal(ones));
  EXPECT_TRUE(found.all.back().equal(torch::tensor({24.0F, 12.0F})));  // a number of each replica
  EXPECT_EQ(found.factor, 2);
  const auto without =
      parallel(std::tuple<at::Tensor, std::optional<at::Tensor>>(ones, std::nullopt), 2.0);
  EXPECT_TRUE(without.sum.equal(ones * 2));
}

/// Uses its parameter for rows above 0, and throws where one is below.
class PartlyImpl : public torch::nn::Cloneable<PartlyImpl> {
 public:
  PartlyImpl() { PartlyImpl::reset(); }
  void reset() override { scale = register_parameter("scale", torch::ones({1})); }
  at::Tensor forward(at::Tensor values) {
    if (values.min().item<float>() < 0) {
      throw std::runtime_error("a negative value: " + std::to_string(values.size(0)) + " rows");
    }
    return values.max().item<float>() > 0 ? values * scale : values;
  }
  at::Tensor scale;
};

TEST(DataParallelModule, AParameterMayBeUsedBySomeReplicasAlone) {
  DataParallel<PartlyImpl> parallel(std::make_shared<PartlyImpl>(), kTwo);
  const auto gradient_of = [&](const at::Tensor& values) {
    parallel.module().zero_grad();
    parallel(values).sum().backward();
    return parallel.module().scale.grad().item<float>();
  };
  EXPECT_EQ(gradient_of(torch::tensor({0.0F, 0.0F, 3.0F, 4.0F})), 7);
  EXPECT_EQ(gradient_of(torch::tensor({1.0F, 2.0F, 0.0F, 0.0F})), 3);
}

std::string error_of(DataParallel<PartlyImpl>& parallel, const at::Tensor& values) {
  try {
    parallel(values);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(DataParallelModule, AnErrorNamesItsReplicaAndTheOthersErrors) {
  DataParallel<PartlyImpl> parallel(std::make_shared<PartlyImpl>(), kTwo);
  const std::string one = error_of(parallel, torch::tensor({1.0F, 1.0F, -1.0F}));
  EXPECT_THAT(one, HasSubstr("replica 1 of 2 (cpu): a negative value: 1 rows"));
  EXPECT_THAT(one, Not(HasSubstr("replica 0")));
  const std::string both = error_of(parallel, torch::tensor({-1.0F, 1.0F, -1.0F}));
  EXPECT_THAT(both, HasSubstr("replica 0 of 2 (cpu): a negative value: 2 rows"));
  EXPECT_THAT(both, HasSubstr("replica 1 of 2 (cpu), too: a negative value: 1 rows"));
  EXPECT_EQ(parallel(torch::ones({4})).sum().item<float>(), 4);  // and goes on
}

TEST(DataParallelModule, RefusesAModuleWithoutCloneByItsClass) {
  try {
    DataParallel<ManyImpl>(std::make_shared<ManyImpl>(), kTwo);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("Many"));
    EXPECT_THAT(error.what(), HasSubstr("torch::nn::Cloneable"));
  }
}

TEST(DataParallelModule, RefusesReplicasThatAreBuiltOtherwise) {
  const auto other = [] {
    auto module = std::make_shared<NetImpl>(0, false);
    module->register_parameter("more", torch::zeros({1}));
    return module;
  };
  EXPECT_THROW(DataParallel<NetImpl>(net(), other, kTwo), std::invalid_argument);
}

/// A weight that its parent may tie to another one.
class ScaleImpl : public torch::nn::Cloneable<ScaleImpl> {
 public:
  ScaleImpl() { ScaleImpl::reset(); }
  void reset() override { weight = register_parameter("weight", torch::ones({1}, torch::kDouble)); }
  void share_registered(const at::Tensor& other) { weight = parameters_["weight"] = other; }
  at::Tensor weight;
};

/// Two modules with one weight, which both register, or whose second one only computes with it.
class TiedImpl : public torch::nn::Cloneable<TiedImpl> {
 public:
  explicit TiedImpl(bool registers) : registers_(registers) { TiedImpl::reset(); }
  void reset() override {
    first = register_module("first", std::make_shared<ScaleImpl>());
    second = register_module("second", std::make_shared<ScaleImpl>());
    if (registers_) return second->share_registered(first->weight);
    second->weight = first->weight;
  }
  at::Tensor forward(at::Tensor rows) { return (rows + first->weight) * second->weight; }
  std::shared_ptr<ScaleImpl> first, second;

 private:
  bool registers_;
};

TEST(DataParallelModule, TiedWeightsStayTiedInReplicasOfAFunction) {
  for (const bool registers : {true, false}) {
    SCOPED_TRACE(registers);
    const auto make = [&] { return std::make_shared<TiedImpl>(registers); };
    const auto module = make();
    DataParallel<TiedImpl> parallel(module, make, kTwo);
    for (int step = 0; step < 3; ++step) {
      const at::Tensor& weight = module->first->weight;
      const at::Tensor found = parallel(rows(4));
      EXPECT_TRUE(torch::allclose(found, module->forward(rows(4)), 1e-12, 1e-14));
      found.sum().backward();
      const at::Tensor expected = (rows(4) + 2 * weight).sum().detach();
      EXPECT_TRUE(torch::allclose(weight.grad().squeeze(), expected, 1e-12, 1e-14));
      const torch::NoGradGuard no_grad;
      module->first->weight.sub_(weight.grad() * 0.01);
      module->zero_grad();
    }
  }
}

// Their second weight would keep its first values, and its gradients would go nowhere.
TEST(DataParallelModule, RefusesClonesThatHaveLostATie) {
  try {
    DataParallel<TiedImpl>(std::make_shared<TiedImpl>(/*registers=*/true), kTwo);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("'first.weight' and 'second.weight' are one tensor in the model alone"));
    EXPECT_THAT(error.what(), HasSubstr("give a function that builds a replica"));
  }
}

TEST(DataParallelModule, RefusesATieOfReplicasAlone) {
  const auto tied = [] { return std::make_shared<TiedImpl>(/*registers=*/true); };
  try {
    DataParallel<TiedImpl>(std::make_shared<TiedImpl>(/*registers=*/false), tied, kTwo);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("'first.weight' and 'second.weight' are one tensor in a replica alone"));
  }
}

TEST(DataParallelModule, RefusesTheModuleItselfAsAReplica) {
  const auto module = net();
  const auto make = [&] { return module; };
  try {
    DataParallel<NetImpl>(module, make, kTwo);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("a replica has the model's own 'first.weight'"));
  }
}

TEST(DataParallelModule, RefusesDevicesThatItCannotTake) {
  const at::Device gpu(at::kCUDA, 0);
  const auto error_for = [](const std::vector<at::Device>& devices) -> std::string {
    try {
      DataParallel<NetImpl>(net(), devices);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_for({gpu, at::kCPU}),
              HasSubstr("the first of the devices is cuda:0, and the model's 'first.weight' is on "
                        "cpu"));
  EXPECT_THAT(error_for({gpu, gpu}), HasSubstr("cuda:0 is named twice"));
}

/// Sums all it gets, or gives as many tensors as it has rows.
class SumImpl : public torch::nn::Module {
 public:
  at::Tensor forward(at::Tensor rows) { return rows.sum(); }
};
class SeveralImpl : public torch::nn::Module {
 public:
  std::vector<at::Tensor> forward(at::Tensor rows) {
    return rows.item<float>() < 0 ? std::vector<at::Tensor>{} : std::vector<at::Tensor>{rows};
  }
};

// The last batch of an epoch has the shape of the others, as torch.nn.DataParallel has it.
TEST(DataParallelModule, ANumberOfASinglePartIsAVectorToo) {
  const auto make = [] { return std::make_shared<SumImpl>(); };
  const at::Tensor ones = torch::ones({3, 2});
  DataParallel<SumImpl> parallel(make(), make, kTwo);
  EXPECT_TRUE(parallel(ones).equal(torch::tensor({4.0F, 2.0F})));
  EXPECT_TRUE(parallel(ones.narrow(0, 0, 1)).equal(torch::tensor({2.0F})));
  DataParallel<SumImpl> alone(make(), make, {at::kCPU});
  EXPECT_TRUE(alone(ones).equal(torch::tensor(6.0F)));
}

TEST(DataParallelModule, RefusesResultsOfUnlikeNumbersOfTensors) {
  const auto make = [] { return std::make_shared<SeveralImpl>(); };
  DataParallel<SeveralImpl> parallel(make(), make, kTwo);
  EXPECT_EQ(parallel(torch::tensor({1.0F, 2.0F})).size(), 1);
  EXPECT_THROW(parallel(torch::tensor({1.0F, -2.0F})), std::invalid_argument);
  EXPECT_THROW(parallel(torch::tensor({-1.0F, 2.0F})), std::invalid_argument);
}

TEST(DataParallelModule, RefusesWhatItCannotScatter) {
  DataParallel<NetImpl> parallel(net(), kTwo);
  EXPECT_THROW(parallel(torch::ones({}, torch::kDouble)), std::invalid_argument);
  EXPECT_THROW(parallel(at::Tensor()), std::invalid_argument);
  const auto make = [] { return std::make_shared<ManyImpl>(); };
  DataParallel<ManyImpl> many(make(), make, kTwo);
  EXPECT_THROW(many(std::tuple<at::Tensor, std::optional<at::Tensor>>(torch::ones({3, 2}),
                                                                      torch::ones({4, 2})),
                    1.0),
               std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
