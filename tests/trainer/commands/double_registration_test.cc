// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/commands/command_line.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/registry.h"

namespace phalanx {
namespace {

class Thing {};

struct NoFields {
  static void describe(config::Schema<NoFields>&) {}
};

class One : public Thing {
 public:
  using Config = NoFields;
  explicit One(Config) {}
};

}  // namespace

template <>
struct RegistryKind<Thing> {
  static constexpr std::string_view kName = "thing";
};

namespace {

PHALANX_REGISTER(Thing, "one", One);
PHALANX_REGISTER(Thing, "one", One);

TEST(DoubleRegistration, IsReportedBeforeAnythingElseAndEndsWithOne) {
  char program[] = "trainer";
  char option[] = "--help";
  char* argv[] = {program, option};
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_command_line(2, argv);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::StartsWith("error: thing 'one' is registered twice: in "));
  EXPECT_EQ(code, 1);
}

}  // namespace
}  // namespace phalanx
