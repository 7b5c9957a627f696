// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/text_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

const nlohmann::json kObject = {{"a", "x"}, {"b c", "y{a}"}, {"n", 3},
                                {"f", 0.5}, {"l", {1}},      {"m", {{{"content", "Hi"}}}}};

TEST(TextTemplate, PutsFieldsIntoTheirPlaces) {
  EXPECT_EQ(TextTemplate("{a}").fill(kObject), "x");
  EXPECT_EQ(TextTemplate("say: {a}, {b c}{a}.").fill(kObject), "say: x, y{a}x.");
  EXPECT_EQ(TextTemplate("{{{a}}} {{a}}").fill(kObject), "{x} {a}");
  EXPECT_EQ(TextTemplate("{n} of {f}").fill(kObject), "3 of 0.5");
}

TEST(TextTemplate, NamesWhatIsWrong) {
  const auto error = [](const char* text) -> std::string {
    try {
      return TextTemplate(text).fill(kObject);
    } catch (const UserError& e) {
      return e.what();
    }
  };
  EXPECT_THAT(error("summarize: "), HasSubstr("names no field"));
  EXPECT_THAT(error("{a"), HasSubstr("'{' without its '}'"));
  EXPECT_THAT(error("{a{b}"), HasSubstr("'{' without its '}'"));
  EXPECT_THAT(error("{a} }"), HasSubstr("'}' without its '{'"));
  EXPECT_THAT(error("{} {a}"), HasSubstr("without a name"));
  EXPECT_THAT(error("{d}"),
              HasSubstr("has no field 'd': its fields are 'a', 'b c', 'f', 'l', 'm', 'n'"));
  EXPECT_THAT(error("{l}"),
              HasSubstr("has no text in the field 'l', but a value of JSON's type array"));
  EXPECT_THAT(error("{m}"), HasSubstr("has no text in the field 'm', but a list of messages"));
}

}  // namespace
}  // namespace phalanx
