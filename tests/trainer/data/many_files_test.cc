// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/many_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/io/file.h"
#include "trainer/metrics/shown_rank.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ManyFiles : public testing::Test {
 protected:
  void TearDown() override { show_work_of_every_rank(true); }

  std::string shown() const { return read_text(screen_.path()); }

  // Until something is shown, or half a minute has passed.
  void wait_for(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (shown().find(text) == std::string::npos && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }

  TextFolder folder_;
  File screen_{folder_.path() / "screen", O_RDWR | O_CREAT};
  Console console_{screen_.descriptor()};
  const ManyFilesShown to_screen_{
      .console = &console_,
      .pace = {.live = milliseconds(1), .first_line = milliseconds(1), .line = milliseconds(1)},
      .few = 3};
};

TEST_F(ManyFiles, AreShownWithTheTimeLeft) {
  std::vector<size_t> seen;
  look_at_each(
      "opening data", 4,
      [&](size_t file) {
        if (file == 1) wait_for("1 of 4 files, ");
        seen.push_back(file);
      },
      to_screen_);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(shown(), HasSubstr("opening data  25%  1 of 4 files, "));
  EXPECT_THAT(shown(), HasSubstr(" left\n"));
}

TEST_F(ManyFiles, OfAnUnknownNumberAreShownByWhatIsDone) {
  look_for_files(
      "finding files in x", [&] { wait_for("finding"); }, to_screen_);
  EXPECT_THAT(shown(), StartsWith("finding files in x\n"));
}

// Time for a line that must not come: as long as the first case needs to see one.
TEST_F(ManyFiles, AreNotShownWhereTheyAreFewOrByOtherRanks) {
  const auto look = [](size_t) { std::this_thread::sleep_for(milliseconds(20)); };
  look_at_each("opening data", 3, look, to_screen_);
  EXPECT_THAT(shown(), IsEmpty());
  show_work_of_every_rank(false);
  look_at_each("opening data", 4, look, to_screen_);
  look_for_files(
      "finding files in x", [&] { look(0); }, to_screen_);
  EXPECT_THAT(shown(), IsEmpty());
  show_work_of_every_rank(true);
  look_for_files(
      "finding files in x", [&] { wait_for("finding"); }, to_screen_);
  EXPECT_THAT(shown(), StartsWith("finding files in x\n"));
}

TEST_F(ManyFiles, GiveTheirErrorsOn) {
  const auto look = [](size_t) { throw std::runtime_error("broken"); };
  EXPECT_THROW(look_at_each("opening data", 4, look, to_screen_), std::runtime_error);
  EXPECT_THROW(look_at_each("opening data", 1, look, to_screen_), std::runtime_error);
}

}  // namespace
}  // namespace phalanx
