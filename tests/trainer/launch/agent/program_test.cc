// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/program.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

TEST(Program, LeavesItsMessageInItsErrorFile) {
  const TemporaryFolder folder;
  const auto message_in = [&](const std::string& text) {
    std::ofstream(folder.path() / "error.json") << text;
    return message_of_program(folder.path() / "error.json");
  };
  EXPECT_EQ(message_in(R"({"message": {"message": "ValueError: no", "extraInfo": {}}})"),
            "ValueError: no");
  EXPECT_EQ(message_in(R"({"message": "no"})"), "no");
  for (const char* text : {"", "{", "[]", "{}", R"({"message": 3})", R"({"message": {}})",
                           R"({"message": {"message": 3}})"}) {
    EXPECT_EQ(message_in(text), "") << text;
  }
  EXPECT_EQ(message_of_program(folder.path() / "none.json"), "");
}

TEST(Program, OneThatIsNotThereIsAUsersMistake) {
  EXPECT_THROW(require_program("no-such-program"), UserError);
  EXPECT_THROW(require_program("./no-such-program"), UserError);
  EXPECT_THROW(require_program("/"), UserError);
  EXPECT_NO_THROW(require_program("sh"));
  EXPECT_NO_THROW(require_program("/bin/sh"));
  EXPECT_THROW(program_main({"no-such-program"})(Environment{}), UserError);
}

}  // namespace
}  // namespace phalanx
