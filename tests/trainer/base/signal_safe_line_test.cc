// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/signal_safe_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "trainer/base/descriptor.h"

namespace phalanx {
namespace {

std::string written(const SignalSafeLine& line) {
  Pipe pipe = make_pipe();
  line.write(pipe.write_end.number());
  pipe.write_end.close();
  std::array<char, 4096> text{};
  const ssize_t size = ::read(pipe.read_end.number(), text.data(), text.size());
  return {text.data(), static_cast<size_t>(size)};
}

TEST(SignalSafeLine, WritesItsParts) {
  EXPECT_EQ(written(SignalSafeLine().add("stopping after ").add("this step").add("\n")),
            "stopping after this step\n");
}

TEST(SignalSafeLine, LeavesOutWhatIsTooLong) {
  EXPECT_EQ(written(SignalSafeLine().add(std::string(500, 'a')).add(std::string(500, 'b'))),
            std::string(500, 'a') + std::string(12, 'b'));
}

TEST(SignalSafeLine, LeavesErrnoAsItWas) {
  errno = ENOENT;
  SignalSafeLine().add("lost").write(-1);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace phalanx
