// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/json_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace phalanx {
namespace {

using nlohmann::json;

std::string cause_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return json_cause(error);
  }
  return "no error";
}

TEST(JsonCause, BeginsWithThePlaceOfASyntaxError) {
  EXPECT_THAT(cause_of([] { return json::parse("{\n  \"a\": x}").dump(); }),
              testing::StartsWith("line 2, column 8: syntax error while parsing"));
}

TEST(JsonCause, LeavesOutTheNamesOfTheLibrary) {
  EXPECT_EQ(cause_of([] { (void)json(3).get<std::string>(); }),
            "type must be string, but is number");
  EXPECT_EQ(cause_of([] { (void)json::object().at("model"); }), "key 'model' not found");
}

TEST(JsonCause, SaysOfWhichKindAValueMustBe) {
  EXPECT_EQ(cause_of([] { (void)json(1).value("type", "BPE"); }),
            "it must be an object, but is number");
  EXPECT_EQ(cause_of([] { (void)json::array().at("type"); }), "it must be an object, but is array");
  EXPECT_EQ(cause_of([] { (void)json::object().at(0); }), "it must be a list, but is object");
  EXPECT_EQ(cause_of([] { (void)json("a").at("type"); }),
            "it must be an object or a list, but is string");
}

TEST(JsonCause, LeavesOtherErrorsAsTheyAre) {
  EXPECT_EQ(cause_of([] { throw std::runtime_error("[json] is no name"); }), "[json] is no name");
}

}  // namespace
}  // namespace phalanx
