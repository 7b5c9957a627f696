// SPDX-License-Identifier: Apache-2.0
// DDP and FSDP on two devices: the CPU's bits, no race between streams, and no wait of the host in
// a step that is not logged.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/long.h"
#include "tests/test_device/device_ranks.h"
#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "tests/test_device/training.h"
#include "tests/trainer/mixins/run_dir.h"
#include "tests/trainer/parallel/in_ranks.h"

namespace phalanx::test_device {
namespace {

constexpr int64_t kSteps = 8;
constexpr int64_t kQuietSteps[] = {3, 6, 7};  // neither they nor those before are logged

void require_same_weights(const Trained& on_device, const Trained& on_cpu) {
  require(on_device.weights.size() == on_cpu.weights.size(), "the same parameters");
  for (const auto& [name, weight] : on_cpu.weights) {
    require(on_device.weights.at(name).equal(weight), name + " as on the CPU");
  }
}

void require_no_drain(const Trained& trained) {
  for (const int64_t step : kQuietSteps) {
    const std::string drains = describe_drains(trained.syncs.at(step));
    require(drains.empty(), "no wait of the host in step " + std::to_string(step) + drains);
  }
}

void expect_trains(std::vector<std::string> overrides) {
  const tiny::RunDir folder;
  for (const char* const name : {"cpu", "device"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  const RankOutcome outcome = in_device_ranks(2, [&](Worlds& worlds) {
    const auto run = [&](const char* name) {
      return TrainingRun{folder.path() / name, kSteps, overrides};
    };
    const Trained on_device = train(run("device"), worlds.on_device);
    const std::vector<std::string> races = take_races();
    require(races.empty(), "no race, but " + (races.empty() ? "" : races.front()));
    require_same_weights(on_device, train(run("cpu"), worlds.on_cpu));
    require_no_drain(on_device);
  });
  EXPECT_EQ(outcome.message, "");
}

// One of each kind first: DDP, FSDP, gradients that are kept from micro-batch to micro-batch.
std::vector<std::vector<std::string>> trainings() {
  const auto sharded = [](const char* strategy, std::vector<std::string> overrides = {}) {
    overrides.emplace_back("parallel.use_fsdp=true");
    overrides.push_back(std::string("parallel.sharding_strategy=") + strategy);
    return overrides;
  };
  return {{"parallel.use_fsdp=false"},
          sharded("FULL_SHARD", {"parallel.fsdp.forward_prefetch=true"}),
          sharded("FULL_SHARD", {"training.gradient_accumulation_steps=2"}),
          {"parallel.use_fsdp=false", "parallel.ddp.find_unused_parameters=true"},
          {"parallel.use_fsdp=false", "parallel.ddp.gradient_as_bucket_view=true"},
          sharded("FULL_SHARD"),
          sharded("FULL_SHARD", {"activation_checkpointing.policy=unit"}),
          sharded("SHARD_GRAD_OP"),
          sharded("NO_SHARD")};
}

TEST(ParallelTraining, IsThatOfTheCpuWithoutRacesAndWaits) {
  for (const auto& overrides : sample_of(trainings(), 3, "trainings on two devices")) {
    SCOPED_TRACE(::testing::PrintToString(overrides));
    expect_trains(overrides);
  }
}

}  // namespace
}  // namespace phalanx::test_device
