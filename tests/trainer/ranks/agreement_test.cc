// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/agreement.h"

#include <gtest/gtest.h>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

TEST(Agreement, SameTopicsPass) {
  const auto outcome = in_ranks(3, [](World& world) {
    require_agreement(world.ranks(), {{"the config", "a: 1\nb: 2\n"}, {"the data", ""}});
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Agreement, NamesTheRankAndTheFirstLineThatDiffers) {
  const auto outcome = in_ranks(3, [](World& world) {
    const bool odd = world.ranks().rank() == 2;
    require_agreement(world.ranks(), {{"the program", "x"},
                                      {"the config", odd ? "a: 1\nb: 3\n" : "a: 1\nb: 2\n"},
                                      {"the model", odd ? "w [2]" : "w [1]"}});
  });
  EXPECT_EQ(outcome.message,
            "the config of rank 2 is not that of rank 0; start all ranks with the same.\n"
            "  rank 0: b: 2\n"
            "  rank 2: b: 3");
}

TEST(Agreement, ATopicThatDiffersSaysMoreOnItsTwoRanksAlone) {
  const auto outcome = in_ranks(3, [](World& world) {
    const bool odd = world.ranks().rank() == 2;
    const auto details = [&]() -> std::string {
      require(world.ranks().rank() != 1, "rank 1 is not compared");
      return odd ? "a.txt, 5 bytes\nb.txt, 6 bytes\n" : "a.txt, 5 bytes\nb.txt, 7 bytes\n";
    };
    require_agreement(world.ranks(),
                      {{"the model", "w"}, {"the data", odd ? "1f" : "2e", details}});
  });
  EXPECT_EQ(outcome.message,
            "the data of rank 2 is not that of rank 0; start all ranks with the same.\n"
            "  rank 0: b.txt, 7 bytes\n"
            "  rank 2: b.txt, 6 bytes");
}

TEST(Agreement, WhatIsTheSameInDetailIsToldAsItIs) {
  const auto outcome = in_ranks(2, [](World& world) {
    require_agreement(world.ranks(), {{"the data", world.ranks().is_first() ? "1f" : "2e",
                                       [] { return std::string("a.txt, 5 bytes\n"); }}});
  });
  EXPECT_EQ(outcome.message,
            "the data of rank 1 is not that of rank 0; start all ranks with the same.\n"
            "  rank 0: 1f\n"
            "  rank 1: 2e");
}

TEST(Agreement, ALineTooManyIsADifference) {
  const auto outcome = in_ranks(2, [](World& world) {
    require_agreement(world.ranks(), {{"the model", world.ranks().is_first() ? "a\n" : "a\nb\n"}});
  });
  EXPECT_EQ(outcome.message,
            "the model of rank 1 is not that of rank 0; start all ranks with the same.\n"
            "  rank 0: \n"
            "  rank 1: b");
}

TEST(Agreement, TheProgramIsItsFile) {
  EXPECT_EQ(describe_program(), describe_program());
  EXPECT_EQ(describe_program().size(), std::string("checksum ").size() + 32);
}

}  // namespace
}  // namespace phalanx
