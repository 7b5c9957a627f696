// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/accumulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

// A resolved config with this section `training`.
config::Node with_training(const std::string& yaml) {
  config::Diagnostics mistakes;
  config::Node section = config::parse_yaml(yaml, "my.yaml", mistakes);
  section = config::resolve(config::declaration<TrainingConfig>(), std::move(section), mistakes);
  mistakes.throw_if_any();
  config::Node tree = config::Node::map();
  tree.set("training", std::move(section));
  return tree;
}

TEST(Accumulation, IsThatOfTheConfig) {
  const config::Node tree = with_training("{max_steps: 1, batch_size: 4, global_batch_size: 16}");
  EXPECT_EQ(accumulation_of(tree, 1), 4);
  EXPECT_EQ(accumulation_of(tree, 2), 2);
}

TEST(Accumulation, IsRefusedWithThePlaceOfTheField) {
  const config::Node tree = with_training("max_steps: 1\nbatch_size: 4\nglobal_batch_size: 18\n");
  EXPECT_THAT([&] { accumulation_of(tree, 1); },
              ThrowsMessage<UserError>(StartsWith("my.yaml:3:20: training.global_batch_size: 18 is "
                                                  "not a multiple of 4")));
}

// The size of a micro-batch is a default here: there is no place to name.
TEST(Accumulation, IsRefusedByTheFieldAloneWhereNobodyWroteIt) {
  const config::Node tree = with_training("{max_steps: 1}");
  EXPECT_THAT([&] { accumulation_of(tree, int64_t{1} << 62); },
              ThrowsMessage<UserError>(StartsWith("training.batch_size ")));
  EXPECT_THAT([&] { accumulation_of(tree, int64_t{1} << 62); },
              ThrowsMessage<UserError>(HasSubstr("more samples than a step may hold")));
}

}  // namespace
}  // namespace phalanx
