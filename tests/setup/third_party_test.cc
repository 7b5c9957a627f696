// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

namespace {

TEST(ThirdParty, LibTorchComputesOnTheCpu) {
  EXPECT_EQ(at::ones({2, 3}).sum().item<double>(), 6.0);
}

TEST(ThirdParty, YamlAndJsonParse) {
  EXPECT_EQ(YAML::Load("{steps: 20}")["steps"].as<int>(), 20);
  EXPECT_EQ(nlohmann::json::parse(R"({"steps": 20})").at("steps").get<int>(), 20);
}

TEST(ThirdParty, FmtFormatsFloatingPointAndGroups) {
  EXPECT_THAT(fmt::format("{:.3f} {} {:>4}", 0.5, 0.1F, "a"), testing::StrEq("0.500 0.1    a"));
}

TEST(ThirdParty, XxhashIsTheStandardOne) { EXPECT_EQ(XXH64("", 0, 0), 0xEF46DB3751D8E999ULL); }

}  // namespace
