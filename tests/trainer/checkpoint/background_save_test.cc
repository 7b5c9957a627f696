// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/background_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/tensors.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/checkpoint/sharded_run.h"
#include "tests/trainer/io/file_size_limit.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/memory/pinned_memory.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(BackgroundSave, DoesNotSeeWhatComesAfterIt) {
  const TemporaryFolder folder;
  ExampleRun run;
  BackgroundSave background{Ranks()};
  for (const int64_t step : {1, 2, 3}) {
    background.start(folder.path(), run.snapshot(step), {}, {});
    run.set_to(99);
    EXPECT_TRUE(background.is_under_way());
    EXPECT_EQ(background.finish().path, folder.path() / step_folder_name(step));
    EXPECT_FALSE(background.is_under_way());
    const FoundRun found = load_newest(folder.path());
    EXPECT_EQ(found.step, step);
    // The generators' states are copied, too.
    EXPECT_TRUE(found.is_whole);
  }
}

/// Counts what is pinned.
class PinCount final : public HostPins {
 public:
  void pin(void* /*memory*/, size_t size) const override { bytes += size; }
  void unpin(void* /*memory*/) const noexcept override {}

  mutable size_t bytes = 0;
};

// LibTorch would pin a power of two.
TEST(BackgroundSave, PinsNoMoreThanTheValuesOfADevice) {
  constexpr int64_t kPage = 4096;
  constexpr int64_t kRows = 8 * kPage / 64 + 8;  // 64 bytes each: a little more than 8 pages.
  test_device::install();
  const TemporaryFolder folder;
  ExampleRun run;
  run.weight = tensors::zeros({kRows, 16}).to(test_device::device());
  const auto pins = std::make_shared<PinCount>();
  BackgroundSave background(Ranks(), pins);
  background.start(folder.path(), run.snapshot(1), {}, {});
  background.finish();
  EXPECT_GE(pins->bytes, run.weight.nbytes());
  EXPECT_LE(pins->bytes, run.weight.nbytes() + run.moment.nbytes() + 2 * kPage);
}

TEST(BackgroundSave, EndsWhatItHasBegunBeforeItGoes) {
  const TemporaryFolder folder;
  ExampleRun run;
  {
    BackgroundSave background{Ranks()};
    background.start(folder.path(), run.snapshot(5), {}, {});
  }
  EXPECT_EQ(load_newest(folder.path()).step, 5);
}

TEST(BackgroundSave, TellsHowFarItIs) {
  const TemporaryFolder folder;
  ExampleRun run;
  BackgroundSave background{Ranks()};
  for (const int64_t step : {1, 2}) {
    background.start(folder.path(), run.snapshot(step), {}, {});
    background.finish();
    EXPECT_GT(background.progress().all, local_bytes(run.model()) + local_bytes(run.optimizer()));
    EXPECT_EQ(background.progress().done, background.progress().all);
  }
}

TEST(BackgroundSave, TellsOfItsFailureAtItsEndAndCanGoOn) {
  const TemporaryFolder folder;
  ExampleRun run;
  save_checkpoint(folder.path(), run.snapshot(1));
  BackgroundSave background{Ranks()};
  {
    const FileSizeLimit limit(10);
    background.start(folder.path(), run.snapshot(2), {}, {});
    try {
      background.finish();
      ADD_FAILURE() << "it was saved";
    } catch (const SaveError& error) {
      EXPECT_THAT(error.what(), HasSubstr("File too large"));
    }
  }
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(1));
  background.start(folder.path(), run.snapshot(3), {}, {});
  background.finish();
  EXPECT_EQ(load_newest(folder.path()).step, 3);
}

TEST(BackgroundSave, LetsRanksTalkOfOtherThingsMeanwhile) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(2, [&](World& world) {
    const Ranks& ranks = world.ranks();
    BackgroundSave background(ranks.separate("saving"));
    for (const int64_t step : {1, 2, 3}) {
      background.start(folder.path(), snapshot_of(step, ranks.rank(), 2), {}, ranks);
      const at::Tensor sum = tensors::ones({1000});
      for (int i = 0; i < 20; ++i) ranks.all_reduce(sum);
      require(sum[0].item<float>() == 1048576.0F, "the sum");
      background.finish();
    }
  });
  ASSERT_EQ(outcome.message, "");
  EXPECT_EQ(verify_checkpoint(folder / "step-00000003").manifest.world_size, 2);
}

}  // namespace
}  // namespace phalanx
