// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/data_parallel_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <string>

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
