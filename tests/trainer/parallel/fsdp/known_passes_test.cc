// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/known_passes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>

namespace phalanx::fsdp {
namespace {

/// A pass that uses these units.
PassSteps pass_of(std::initializer_list<std::size_t> units) {
  PassSteps steps;
  for (const std::size_t unit : units) steps.push_back({.action = Action::use, .unit = unit});
  return steps;
}

void expect(const KnownPasses& passes, PassKind kind, const PassSteps& steps) {
  ASSERT_NE(passes.expected(kind), nullptr);
  EXPECT_EQ(*passes.expected(kind), steps);
}

TEST(KnownPasses, ExpectNothingAtFirst) {
  KnownPasses passes;
  EXPECT_EQ(passes.expected(PassKind::training), nullptr);
  passes.add(PassKind::training, pass_of({0, 1}));
  EXPECT_EQ(passes.expected(PassKind::without_backward), nullptr);
}

TEST(KnownPasses, ExpectTheNewestOfTheKind) {
  KnownPasses passes;
  passes.add(PassKind::accumulating, pass_of({0}));
  passes.add(PassKind::training, pass_of({0, 1}));
  expect(passes, PassKind::accumulating, pass_of({0}));
  passes.add(PassKind::training, pass_of({1}));
  expect(passes, PassKind::training, pass_of({1}));
}

// As a step that trains two parts of a model in turn.
TEST(KnownPasses, ExpectWhatFollowedTheLastTime) {
  KnownPasses passes;
  const PassSteps critic = pass_of({0, 0});
  const PassSteps generator = pass_of({1, 0});
  for (int step = 0; step < 2; ++step) {
    passes.add(PassKind::training, critic);
    passes.add(PassKind::training, generator);
  }
  expect(passes, PassKind::training, critic);
  passes.add(PassKind::training, critic);
  expect(passes, PassKind::training, generator);
}

TEST(KnownPasses, ForgetPassesThatNeverComeAgain) {
  KnownPasses passes;
  for (std::size_t i = 0; i < 1000; ++i) {
    passes.add(PassKind::training, pass_of({i}));
    expect(passes, PassKind::training, pass_of({i}));
  }
}

}  // namespace
}  // namespace phalanx::fsdp
