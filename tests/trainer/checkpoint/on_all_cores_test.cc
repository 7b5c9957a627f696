// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/on_all_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>

#include "tests/trainer/host/one_core.h"

namespace phalanx {
namespace {

TEST(OnAllCores, EachPieceIsDoneOnce) {
  std::array<std::atomic<int>, 100> done{};
  on_all_cores(done.size(), [&]() -> Work { return [&](std::size_t i) { ++done[i]; }; });
  EXPECT_THAT(done, testing::Each(testing::Eq(1)));
}

TEST(OnAllCores, AProcessOfOneCoreHasOneWorker) {
  const OneCore pinned;
  std::atomic<int> workers = 0;
  on_all_cores(100, [&]() -> Work {
    ++workers;
    return [](std::size_t) {};
  });
  EXPECT_EQ(workers, 1);
}

TEST(OnAllCores, ThrowsWhatAPieceThrows) {
  const auto fail_at_third = []() -> Work {
    return [](std::size_t i) {
      if (i == 2) throw std::runtime_error("the third");
    };
  };
  EXPECT_THAT([&] { on_all_cores(100, fail_at_third); },
              testing::ThrowsMessage<std::runtime_error>("the third"));
}

TEST(OnAllCores, DoesNothingForNothing) {
  on_all_cores(0, []() -> Work { throw std::logic_error("a worker without work"); });
}

}  // namespace
}  // namespace phalanx
