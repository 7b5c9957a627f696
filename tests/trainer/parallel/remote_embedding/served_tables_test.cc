// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/served_tables.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

namespace phalanx::remote_embedding {
namespace {

using std::chrono::milliseconds;

at::Tensor table() { return at::arange(8, at::kDouble).view({4, 2}); }

at::Tensor rows(int64_t count, double value) { return at::full({count, 2}, value, at::kDouble); }

TEST(ServedTables, AnswerALookupOnceItsPassIsThere) {
  at::Tensor served = table();
  ServedTables tables({served}, 1);
  const rpc::Function look_up = tables.functions().at(kLookUp);
  const rpc::Future first = look_up(look_up_call(1, 0, at::tensor({3, 1}, at::kLong)));
  const rpc::Future second = look_up(look_up_call(2, 0, at::tensor({0}, at::kLong)));
  EXPECT_FALSE(first.is_done());
  tables.publish(1);
  ASSERT_TRUE(first.is_done());
  EXPECT_FALSE(second.is_done());
  EXPECT_TRUE(first.wait().tensors[0].equal(served.index_select(0, at::tensor({3, 1}, at::kLong))));
  served.add_(10);
  tables.publish(2);
  ASSERT_TRUE(second.is_done());
  EXPECT_TRUE(second.wait().tensors[0].equal((table() + 10).narrow(0, 0, 1)));
}

TEST(ServedTables, GiveAWholeTable) {
  ServedTables tables({at::Tensor(), table()}, 1);
  tables.publish(1);
  const rpc::Function look_up = tables.functions().at(kLookUp);
  EXPECT_TRUE(look_up(look_up_call(1, 1, {})).wait().tensors[0].equal(table()));
}

TEST(ServedTables, TakeTheMeanOfRowsAndOfWholeTables) {
  ServedTables tables({table(), table(), table()}, 2);
  const rpc::Function push = tables.functions().at(kPush);
  push(push_call(1, 1,
                 {{.table = 0, .numbers = at::tensor({1, 3}, at::kLong), .gradient = rows(2, 4)},
                  {.table = 1, .gradient = rows(4, 2)}}));
  EXPECT_FALSE(tables.rounds().wait(1, milliseconds(0)));
  EXPECT_EQ(tables.rounds().missing(1), (std::vector<int64_t>{0}));
  push(push_call(0, 1,
                 {{.table = 0, .numbers = at::tensor({3}, at::kLong), .gradient = rows(1, 2)},
                  {.table = 1, .gradient = rows(4, 4)}}));
  ASSERT_TRUE(tables.rounds().wait(1, milliseconds(0)));
  const auto means = tables.take_means(1);
  at::Tensor expected = at::zeros({4, 2}, at::kDouble);
  expected[1] += 2;
  expected[3] += 3;
  EXPECT_TRUE(means[0].equal(expected));
  EXPECT_TRUE(means[1].equal(rows(4, 3)));
  EXPECT_FALSE(means[2].defined());  // nobody has looked it up
}

TEST(ServedTables, KeepWhatEachRankSaysOfAPass) {
  ServedTables tables({table()}, 2);
  const rpc::Function over = tables.functions().at(kPassIsOver);
  over(pass_is_over_call(1, 7, "b\nc"));
  over(pass_is_over_call(0, 7, ""));
  EXPECT_EQ(tables.passes().take(7), (std::vector<std::string>{"", "b\nc"}));
}

TEST(ServedTables, RefuseWhatTheyDoNotHave) {
  ServedTables tables({at::Tensor(), table()}, 1);
  tables.publish(1);
  const rpc::FunctionTable functions = tables.functions();
  const rpc::Function& look_up = functions.at(kLookUp);
  const rpc::Function& push = functions.at(kPush);
  EXPECT_THROW(look_up(look_up_call(1, 0, {})), std::invalid_argument);
  EXPECT_THROW(look_up(look_up_call(1, 2, {})), std::invalid_argument);
  EXPECT_THROW(push(push_call(0, 1, {{.table = 0, .gradient = rows(4, 1)}})),
               std::invalid_argument);
  EXPECT_THROW(push(push_call(0, 1, {{.table = 1, .gradient = rows(3, 1)}})),
               std::invalid_argument);
  EXPECT_THROW(push(push_call(5, 1, {})), std::invalid_argument);
}

TEST(ServedTables, FailALookupThatWaitsForATableTheyDoNotHave) {
  ServedTables tables({at::Tensor()}, 1);
  const rpc::Future waiting = tables.functions().at(kLookUp)(look_up_call(1, 0, {}));
  tables.publish(1);
  EXPECT_THROW(waiting.wait(), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx::remote_embedding
