// SPDX-License-Identifier: Apache-2.0
// Batch normalization over the batches of ranks that are on devices of their own.

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "tests/test_device/device_ranks.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/ddp/ddp.h"

namespace phalanx::test_device {
namespace {

bool is_close(const at::Tensor& value, double expected) {
  return std::abs(value.item<double>() - expected) < 1e-4;
}

TEST(SyncBatchNormOnDevices, HasTheStatisticsOfAllRanks) {
  const RankOutcome outcome = in_device_ranks(2, [](Worlds& worlds) {
    const World& world = worlds.on_device;
    torch::nn::BatchNorm1d norm(1);
    norm->to(world.device());
    const auto engine =
        prepare_ddp(*norm, world.ranks(), {}, /*sync_module_states=*/true, /*sync_batchnorm=*/true);
    // 0 and 2 on rank 0, 4 and 6 on rank 1: the mean of all is 3, the sum of squares 20.
    const auto first = static_cast<float>(4 * world.ranks().rank());
    const at::Tensor rows = torch::tensor({first, first + 2}).view({2, 1}).to(world.device());
    const at::Tensor output = engine->forward([&] { return norm->forward(rows); });
    require(is_close(norm->running_mean, 0.1 * 3), "the running mean");
    require(is_close(norm->running_var, 0.9 + 0.1 * 20 / 3), "the running variance");
    require(is_close(output[0], (first - 3) / std::sqrt(5 + 1e-5)), "the first result");
    // The gradient of the weight is the mean over the ranks of the sum of results by distance.
    output.square().sum().backward();
    require(is_close(norm->weight.grad(), 4), "the gradient of the weight");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx::test_device
