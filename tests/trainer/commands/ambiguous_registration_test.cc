// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/loop/tiny.h"
#include "trainer/commands/command_line.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

struct NamedConfig {
  std::string name;
  static void describe(config::Schema<NamedConfig>& s) {
    s.field("name", &NamedConfig::name, "which a config cannot set");
  }
};

class Named : public tiny::Descent {
 public:
  using Config = NamedConfig;
  explicit Named(Config) : Descent(0.1) {}
};

REGISTER_OPTIMIZER("named", Named);

TEST(AmbiguousRegistration, IsReportedBeforeAnythingElseAndEndsWithOne) {
  char program[] = "trainer";
  char option[] = "--help";
  char* argv[] = {program, option};
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_command_line(2, argv);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::StartsWith("error: optimizer 'named' ("));
  EXPECT_EQ(code, 1);
}

}  // namespace
}  // namespace phalanx
