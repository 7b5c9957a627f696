// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/batch_norm/batch_norm_1d.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"
#include "trainer/parallel/ddp/ddp.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kChannels = 3;
constexpr double kTolerance = 1e-10;

at::Tensor rows(int64_t count, double phase) {
  return torch::sin(torch::arange(count * kChannels, torch::kDouble) * 0.7 + phase)
      .view({count, kChannels});
}

// A loss whose gradient does not vanish by symmetry.
at::Tensor loss_of(const at::Tensor& output) { return (output + 1).pow(3).sum(); }

void require_close(const at::Tensor& found, const at::Tensor& expected, const std::string& what) {
  require(torch::allclose(found.to(torch::kDouble), expected.to(torch::kDouble), kTolerance,
                          kTolerance),
          what);
}

/// Samples of each of two ranks.
struct Step {
  int64_t first;
  int64_t second;
};

void train_as_joined(const Ranks& ranks, const torch::nn::BatchNormOptions& options) {
  torch::nn::BatchNorm1d whole(options);
  BatchNorm1d norm(options);
  whole->to(torch::kDouble);
  norm->to(torch::kDouble);
  const auto engine =
      prepare_ddp(*norm, ranks, {}, /*sync_module_states=*/true, /*sync_batchnorm=*/true);
  double phase = 0;
  for (const Step step : {Step{4, 1}, Step{1, 1}, Step{1, 3}, Step{2, 2}}) {
    const std::string name = fmt::format("{} and {} samples, ", step.first, step.second);
    const at::Tensor all = rows(step.first + step.second, ++phase);
    const at::Tensor own =
        ranks.is_first() ? all.narrow(0, 0, step.first) : all.narrow(0, step.first, step.second);
    const at::Tensor expected = whole->forward(all);
    const at::Tensor found =
        engine->forward([&] { return norm->forward(own); }, /*synchronize=*/true);
    require_close(found,
                  ranks.is_first() ? expected.narrow(0, 0, step.first)
                                   : expected.narrow(0, step.first, step.second),
                  name + "the result");
    loss_of(expected).backward();
    // The mean over both ranks is the sum of all samples.
    (loss_of(found) * ranks.world_size()).backward();
    require_close(norm->weight.grad(), whole->weight.grad(), name + "the gradient");
    require_close(norm->running_mean, whole->running_mean, name + "the running mean");
    require_close(norm->running_var, whole->running_var, name + "the running variance");
    require_close(norm->num_batches_tracked, whole->num_batches_tracked, name + "the count");
    norm->zero_grad();
    whole->zero_grad();
  }
}

TEST(BatchNorm1d, TakesASingleSampleOfARankIntoTheStatisticsOfAll) {
  const auto body = [](World& world) {
    train_as_joined(world.ranks(), torch::nn::BatchNormOptions(kChannels));
    train_as_joined(world.ranks(), torch::nn::BatchNormOptions(kChannels).momentum(std::nullopt));
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

template <class Module>
std::string error_of(Module& module, const at::Tensor& input) {
  try {
    module->forward(input);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

// The reason for this class: the other rank, which has more samples, would wait.
TEST(BatchNorm1d, LibTorchsOwnRefusesItOnThatRankAlone) {
  const auto body = [](World& world) {
    if (world.ranks().is_first()) return;
    const batch_norm::StatisticsScope scope(world.ranks());
    torch::nn::BatchNorm1d norm(kChannels);
    const std::string error = error_of(norm, torch::ones({1, kChannels}));
    require(error.find("Expected more than 1 value per channel") != std::string::npos, error);
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

TEST(BatchNorm1d, IsLibTorchsWithoutRanks) {
  BatchNorm1d norm(kChannels);
  torch::nn::BatchNorm1d expected(kChannels);
  const at::Tensor input = rows(4, 0).to(torch::kFloat);
  EXPECT_TRUE(norm->forward(input).equal(expected->forward(input)));
  const at::Tensor one = torch::ones({1, kChannels});
  EXPECT_THAT(error_of(norm, one), HasSubstr("Expected more than 1 value per channel"));
  EXPECT_THAT(error_of(norm, torch::ones({kChannels})), HasSubstr("expected 2D or 3D input"));
  norm->eval();
  expected->eval();
  EXPECT_TRUE(norm->forward(one).equal(expected->forward(one)));
  EXPECT_TRUE(norm->running_mean.equal(expected->running_mean));
}

}  // namespace
}  // namespace phalanx
