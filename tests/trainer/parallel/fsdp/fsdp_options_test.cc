// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/fsdp_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What is wrong with a section `parallel.fsdp`.
std::string problems_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  const config::Node given = config::parse_yaml(yaml, "test.yaml", diagnostics);
  config::resolve(config::declaration<FsdpOptions>(), given, diagnostics);
  return diagnostics.text();
}

TEST(FsdpOptions, LimitAllGathersIsAlwaysOn) {
  EXPECT_THAT(problems_of("limit_all_gathers: true"), IsEmpty());
  EXPECT_THAT(problems_of("limit_all_gathers: false"),
              HasSubstr("limit_all_gathers: false is not offered"));
}

}  // namespace
}  // namespace phalanx
