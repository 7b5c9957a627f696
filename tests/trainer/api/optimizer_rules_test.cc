// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/optimizer_rules.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/api/model.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Nothing {
  static constexpr std::string_view kInterface = "Nothing";
};

/// Three matrices and a vector.
class Net : public Model<Nothing> {
 public:
  Net() {
    for (const char* name : {"body_in", "body_out", "judge"}) {
      register_parameter(name, at::zeros({2, 2}));
    }
    register_parameter("judge_bias", at::zeros({2}));
  }
};

OptimizerRules share(const std::string& name, std::vector<std::string> patterns) {
  return {.name = name,
          .parameters = ParameterPatterns{.patterns = std::move(patterns),
                                          .field = "optimizers." + name + ".parameters"}};
}

OptimizerRules rest(const std::string& name) { return {.name = name}; }

std::vector<std::string> names(const std::vector<ParameterGroup>& groups) {
  std::vector<std::string> names;
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) names.push_back(parameter.name);
  }
  return names;
}

std::string error_of(const std::vector<OptimizerRules>& optimizers) {
  Net net;
  try {
    freeze_by_optimizer(net, optimizers);
    groups_by_optimizer(net, optimizers);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(OptimizerRules, DealTheParametersByTheirPatterns) {
  Net net;
  const auto groups =
      groups_by_optimizer(net, std::vector{share("critic", {"judge*"}), share("body", {"body_*"})});
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(names(groups[0]), ElementsAre("judge", "judge_bias"));
  EXPECT_THAT(groups[0], SizeIs(2)) << "with decay and without";
  EXPECT_THAT(names(groups[1]), ElementsAre("body_in", "body_out"));
}

TEST(OptimizerRules, OneWithoutPatternsTakesTheRest) {
  Net net;
  const auto groups =
      groups_by_optimizer(net, std::vector{rest("body"), share("critic", {"judge", "judge_*"})});
  EXPECT_THAT(names(groups[0]), ElementsAre("body_in", "body_out"));
}

TEST(OptimizerRules, AParameterThatTwoTakeIsRefused) {
  EXPECT_THAT(error_of({share("critic", {"judge*"}), share("body", {"*"})}),
              AllOf(HasSubstr("optimizers.critic.parameters and optimizers.body.parameters match"),
                    HasSubstr("judge, judge_bias;"), HasSubstr("leave out `parameters`")));
}

TEST(OptimizerRules, AParameterThatNoneTakesIsRefusedWithTheNearestPattern) {
  EXPECT_THAT(error_of({share("critic", {"judge"}), share("body", {"body_*"})}),
              AllOf(HasSubstr("no optimizer takes these of the model's trained parameters: "
                              "judge_bias;"),
                    HasSubstr("'judge' of optimizers.critic.parameters")));
}

TEST(OptimizerRules, APatternThatMatchesNothingIsRefused) {
  EXPECT_THAT(error_of({share("critic", {"jugde"}), rest("body")}),
              AllOf(HasSubstr("optimizers.critic.parameters: no trained parameter"),
                    HasSubstr("'jugde'; of 4: judge, ")));
}

TEST(OptimizerRules, OneThatIsLeftWithNothingIsRefused) {
  EXPECT_THAT(error_of({share("critic", {"*"}), rest("body")}),
              HasSubstr("optimizers.body: the others take all"));
}

TEST(OptimizerRules, FreezeItsOwnParametersAlone) {
  Net net;
  std::vector<OptimizerRules> optimizers{share("critic", {"judge", "judge_*"}), rest("body")};
  optimizers[0].rules.freeze = {.patterns = {"*"}, .field = "optimizers.critic.freeze"};
  EXPECT_THAT(error_of(optimizers), HasSubstr("no trained parameter"));
  optimizers[0].rules.freeze.patterns = {"judge"};
  freeze_by_optimizer(net, optimizers);
  const auto groups =
      groups_by_optimizer(net, std::vector{share("critic", {"judge_*"}), rest("b")});
  EXPECT_THAT(names(groups[0]), ElementsAre("judge_bias"));
  EXPECT_THAT(names(groups[1]), ElementsAre("body_in", "body_out"));
  optimizers[0].rules.freeze.patterns = {"body_in"};
  EXPECT_THAT(error_of(optimizers), HasSubstr("optimizers.critic.freeze: no parameter"));
}

TEST(OptimizerRules, DescribeTheGroupsOfEach) {
  Net net;
  std::vector<OptimizerRules> optimizers{rest("body"), share("critic", {"judge_bias"})};
  optimizers[0].rules.freeze = {.patterns = {"judge"}, .field = "optimizers.body.freeze"};
  freeze_by_optimizer(net, optimizers);
  const auto lines = describe_by_optimizer(groups_by_optimizer(net, optimizers), net, optimizers);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0],
              ElementsAre("decay: 2 tensors, 8 parameters", "frozen: 1 tensor, 4 parameters"));
  EXPECT_THAT(lines[1], ElementsAre("no decay: 1 tensor, 2 parameters"));
}

TEST(OptimizerRules, DescribeWhatEachFreezes) {
  Net net;
  std::vector<OptimizerRules> optimizers{rest("body"), share("critic", {"judge*"})};
  optimizers[0].rules.freeze = {.patterns = {"body_in"}, .field = "optimizers.body.freeze"};
  optimizers[1].rules.freeze = {.patterns = {"judge_bias"}, .field = "optimizers.critic.freeze"};
  freeze_by_optimizer(net, optimizers);
  const auto lines = describe_by_optimizer(groups_by_optimizer(net, optimizers), net, optimizers);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].back(), "frozen: 1 tensor, 4 parameters");
  EXPECT_EQ(lines[1].back(), "frozen: 1 tensor, 2 parameters");
}

TEST(OptimizerRules, AnOnlyOneDescribesWhatIsFrozen) {
  Net net;
  std::vector<OptimizerRules> optimizers{rest("body")};
  optimizers[0].rules.freeze = {.patterns = {"judge*"}, .field = "optimizer.freeze"};
  freeze_by_optimizer(net, optimizers);
  const auto lines = describe_by_optimizer(groups_by_optimizer(net, optimizers), net, optimizers);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              ElementsAre("decay: 2 tensors, 8 parameters", "frozen: 2 tensors, 6 parameters"));
}

}  // namespace
}  // namespace phalanx
