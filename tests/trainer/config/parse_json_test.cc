// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/parse_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ParseJson, IsTheReverseOfToJson) {
  for (
      const std::string text :
      {R"({"a": [1, -2, 3.5, 1.0e-05], "b": {"c": null, "d": "x y"}, "e": true, "f": [], "g": {}})",
       "null", "7", R"("\"quoted\" \\ ünïcode")", "[[[]]]"}) {
    EXPECT_EQ(to_json(parse_json(text, "x.json")), text);
  }
}

TEST(ParseJson, KeepsTypesOrderAndWhereItIsFrom) {
  const Node node = parse_json(R"({"z": 1, "a": "1", "m": 1e2})", "x.json");
  EXPECT_EQ(node.entries.front().key, "z");
  EXPECT_EQ(node.find("z")->type, ScalarType::integer);
  EXPECT_EQ(node.find("a")->type, ScalarType::string);
  EXPECT_EQ(node.find("m")->type, ScalarType::real);
  EXPECT_EQ(node.find("m")->origin.text(), "x.json");
  EXPECT_TRUE(node.find("m")->origin.is_written());
}

TEST(ParseJson, NumbersBeyondAnIntegerAreReals) {
  EXPECT_EQ(parse_json("9223372036854775807", "x").type, ScalarType::integer);
  EXPECT_EQ(parse_json("9223372036854775808", "x").type, ScalarType::real);
  EXPECT_EQ(parse_json("-9223372036854775808", "x").text, "-9223372036854775808");
}

TEST(ParseJson, RefusesWhatIsNoneAndNamesTheFile) {
  for (const std::string text :
       {"", "{", "[1,]", "{'a': 1}", "NaN", "1 2", "{\"a\": 01}", "\xff"}) {
    EXPECT_THAT([&] { parse_json(text, "x.json"); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("'x.json'"), HasSubstr("no JSON"))))
        << text;
  }
  EXPECT_THAT([&] { parse_json(std::string("{}\0{", 4), "x.json"); },
              ThrowsMessage<UserError>(HasSubstr("is zero")));
  EXPECT_THAT([&] { parse_json(R"({"a": {"b": 1, "b": 2}})", "x.json"); },
              ThrowsMessage<UserError>(HasSubstr("the key 'b' appears twice")));
}

TEST(ParseJson, DeepTextsTakeNoStack) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(to_json(parse_json(nested(64), "x")), nested(64));
  for (const std::size_t depth : {65, 1'000'000}) {
    EXPECT_THAT([&] { parse_json(nested(depth), "x"); },
                ThrowsMessage<UserError>(HasSubstr("nested too deeply")));
  }
}

}  // namespace
}  // namespace phalanx::config
