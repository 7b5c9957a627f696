// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/model_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/print.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

config::Node linear() {
  config::Node section = config::Node::map();
  section.set("name", config::Node::string("linear"));
  return section;
}

TEST(ModelSection, IsCheckedByItselfWithOverridesAndDefaults) {
  EXPECT_EQ(config::to_json(resolved_model(linear())), R"({"name": "linear", "dropout": 0.0})");
  const std::vector<std::string> overrides{"model.dropout=0.5"};
  EXPECT_EQ(config::to_json(resolved_model(linear(), overrides)),
            R"({"name": "linear", "dropout": 0.5})");
}

TEST(ModelSection, OfMistakesAllAreTold) {
  const std::vector<std::string> overrides{"model.dropout=2", "model.width=3", "optimizer.lr=1"};
  EXPECT_THAT([&] { resolved_model(linear(), overrides); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("model.dropout"), HasSubstr("model.width"),
                                             HasSubstr("optimizer"))));
}

TEST(ModelSection, AModelWithoutATableSaysWhatToDo) {
  EXPECT_THAT([] { hugging_face_model("linear"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'linear'"), HasSubstr("hugging_face()"))));
  EXPECT_THAT([] { hugging_face_model("nonsense"); },
              ThrowsMessage<UserError>(HasSubstr("unknown model 'nonsense'")));
  EXPECT_THAT([] { model_of_type("gpt2"); },
              ThrowsMessage<UserError>(HasSubstr("model_type 'gpt2'; there are: none")));
}

TEST(ModelSection, TellsTheTensorsOfItsModel) {
  const auto tensors = tensors_of_model(resolved_model(linear()));
  EXPECT_THAT(tensors, Not(IsEmpty()));
  for (const ShardedTensorView& tensor : tensors) EXPECT_EQ(tensor.shape.empty(), false);
}

}  // namespace
}  // namespace phalanx
