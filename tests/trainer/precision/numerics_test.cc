// SPDX-License-Identifier: Apache-2.0
#include "trainer/precision/numerics.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kWorkspace = "CUBLAS_WORKSPACE_CONFIG";

class NumericsTest : public testing::Test {
 protected:
  NumericsTest() { ::unsetenv(kWorkspace); }
  ~NumericsTest() override {
    ::unsetenv(kWorkspace);
    use_numerics({});
  }
};

TEST_F(NumericsTest, AreThoseOfLibTorchByDefault) {
  prepare_numerics({});
  use_numerics({});
  EXPECT_EQ(std::getenv(kWorkspace), nullptr);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicCuDNN());
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::HIGHEST);
}

TEST_F(NumericsTest, ThatAreDeterministicAreSoEverywhere) {
  const Numerics numerics{.deterministic = true};
  prepare_numerics(numerics);
  use_numerics(numerics);
  EXPECT_STREQ(std::getenv(kWorkspace), ":4096:8");
  const at::Context& context = at::globalContext();
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_TRUE(context.deterministicMkldnn());
  EXPECT_FALSE(context.benchmarkCuDNN());
  EXPECT_FALSE(context.deterministicFillUninitializedMemory());
}

TEST_F(NumericsTest, MayWarnWhereThereIsNoDeterministicAlgorithm) {
  use_numerics({.deterministic = true, .warn_only = true});
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(at::globalContext().deterministicAlgorithmsWarnOnly());
  use_numerics({.warn_only = true});
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
}

TEST_F(NumericsTest, TakeNoPlannedAttentionWhereShapesChange) {
  use_numerics({.changing_shapes = true});
  EXPECT_FALSE(at::globalContext().userEnabledCuDNNSDP());
  use_numerics({});
  EXPECT_TRUE(at::globalContext().userEnabledCuDNNSDP());
}

TEST_F(NumericsTest, KeepAWorkspaceThatRepeatsResults) {
  ::setenv(kWorkspace, ":16:8", 1);
  prepare_numerics({.deterministic = true});
  EXPECT_STREQ(std::getenv(kWorkspace), ":16:8");
}

TEST_F(NumericsTest, RefuseAWorkspaceThatDoesNot) {
  ::setenv(kWorkspace, ":4096:2", 1);
  prepare_numerics({});  // which is the user's choice then
  EXPECT_THAT([] { prepare_numerics({.deterministic = true}); },
              testing::ThrowsMessage<UserError>(AllOf(HasSubstr("training.deterministic"),
                                                      HasSubstr("':4096:2'"),
                                                      HasSubstr("unset the variable"))));
}

TEST_F(NumericsTest, HavePyTorchsPrecisions) {
  use_numerics({.float32_matmul = MatmulPrecision::high});
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::HIGH);
  EXPECT_TRUE(at::globalContext().allowTF32CuBLAS());
  use_numerics({.float32_matmul = MatmulPrecision::medium});
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::MEDIUM);
}

}  // namespace
}  // namespace phalanx
