// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/kept_schedule.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

class Text : public Stateful {
 public:
  std::string json() const override { return text; }
  void restore(std::string_view json) override { restored = std::string(json); }

  std::string text;
  std::optional<std::string> restored;
};

class KeptScheduleTest : public ::testing::Test {
 protected:
  KeptSchedule kept(const std::string& name) {
    return {name, text_, [this](const std::string& line) { told_.push_back(line); }};
  }

  Text text_;
  std::vector<std::string> told_;
};

TEST_F(KeptScheduleTest, GoesOnUnderItsName) {
  for (const std::string& text : std::vector<std::string>{R"({"lowered":0.1,"bad":3})", ""}) {
    text_.text = text;
    kept("plateau").restore(kept("plateau").json());
    EXPECT_EQ(text_.restored, text);
  }
  EXPECT_TRUE(told_.empty());
}

TEST_F(KeptScheduleTest, BeginsAnewUnderAnother) {
  text_.text = R"({"lowered":0.1})";
  const std::string json = kept("plateau").json();
  kept("mine").restore(json);
  EXPECT_FALSE(text_.restored);
  EXPECT_EQ(told_, std::vector<std::string>{
                       "the checkpoint holds the state of lr_scheduler plateau: mine begins anew"});
}

TEST_F(KeptScheduleTest, TakesTheStateThatEarlierVersionsKeptAlone) {
  kept("plateau").restore(R"({"metric":"loss","lowered":0.1})");
  EXPECT_EQ(text_.restored, R"({"metric":"loss","lowered":0.1})");
  EXPECT_TRUE(told_.empty());
}

TEST_F(KeptScheduleTest, RefusesWhatItHasNotWritten) {
  for (const char* const json : {"", "[]", "{}", R"({"name":1})"}) {
    EXPECT_THROW(kept("plateau").restore(json), UserError) << json;
  }
}

}  // namespace
}  // namespace phalanx
