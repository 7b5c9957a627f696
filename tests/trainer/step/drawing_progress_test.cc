// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/drawing_progress.h"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/io/file.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/metrics/shown_rank.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;

class ShowDrawing : public testing::Test {
 protected:
  std::string shown() const { return read_text(screen_.path()); }

  // Until something is shown, or half a minute has passed.
  void wait_for(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (shown().find(text) == std::string::npos && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }

  TemporaryFolder folder_;
  File screen_{folder_.path() / "screen", O_RDWR | O_CREAT};
  Console console_{screen_.descriptor()};
  const DrawingShown to_screen_{
      .console = &console_,
      .pace = {.live = milliseconds(1), .first_line = milliseconds(1), .line = milliseconds(1)},
      .few = 1024};
};

TEST_F(ShowDrawing, CountsTheBytesThatAreFilled) {
  const at::Tensor values = at::zeros({256});
  show_drawing(
      4096,
      [&](const DeferredInit::Filled& filled) {
        EXPECT_TRUE(filled(nullptr, values)) << "it keeps its memory";
        wait_for("25%");
      },
      to_screen_);
  EXPECT_THAT(shown(), HasSubstr("drawing the model's weights  25%  1.02 kB of 4.10 kB, "));
}

TEST_F(ShowDrawing, ShowsNothingOfASmallModel) {
  int calls = 0;
  show_drawing(
      1024,
      [&](const DeferredInit::Filled& filled) {
        filled(nullptr, at::zeros({1}));
        std::this_thread::sleep_for(milliseconds(20));  // for a line that must not come
        ++calls;
      },
      to_screen_);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ShowDrawing, ShowsNothingOnOtherRanks) {
  show_work_of_every_rank(false);
  show_drawing(
      4096, [](const DeferredInit::Filled&) { std::this_thread::sleep_for(milliseconds(20)); },
      to_screen_);
  show_work_of_every_rank(true);
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ShowDrawing, GivesErrorsOn) {
  const auto fails = [](const DeferredInit::Filled&) { throw std::runtime_error("no memory"); };
  EXPECT_THROW(show_drawing(4096, fails, to_screen_), std::runtime_error);
}

}  // namespace
}  // namespace phalanx
