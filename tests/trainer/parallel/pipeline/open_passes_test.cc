// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/open_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace phalanx::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OpenPasses, NoticeOnceThatAGraphIsGoneWithoutABackwardPass) {
  OpenPasses open;
  auto first = open.open(1);
  auto second = open.open(2);
  auto third = open.open(3);
  EXPECT_THAT(open.take_left_out(), IsEmpty()) << "their backward passes may still come";
  first.reset();
  third.reset();
  EXPECT_THAT(open.take_left_out(), ElementsAre(1, 3));
  EXPECT_THAT(open.take_left_out(), IsEmpty());
  second.reset();
  EXPECT_THAT(open.take_left_out(), ElementsAre(2));
}

TEST(OpenPasses, ForgetAPassWhoseBackwardPassBegins) {
  OpenPasses open;
  auto graph = open.open(1);
  EXPECT_EQ(open.first(), 1);
  EXPECT_TRUE(open.close(1));
  EXPECT_FALSE(open.close(1)) << "its second backward pass";
  EXPECT_EQ(open.first(), std::nullopt);
  graph.reset();
  EXPECT_THAT(open.take_left_out(), IsEmpty());
}

}  // namespace
}  // namespace phalanx::pipeline
