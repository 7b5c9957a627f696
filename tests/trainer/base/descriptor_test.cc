// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/descriptor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace phalanx {
namespace {

Descriptor some_file() { return take_descriptor(::memfd_create("test", MFD_CLOEXEC), "make"); }

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, IsClosedAtScopeExit) {
  int number = -1;
  {
    const Descriptor file = some_file();
    number = file.number();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, IsMovedWithoutBeingClosed) {
  Descriptor from = some_file();
  const int number = from.number();
  Descriptor to = some_file();
  const int old = to.number();
  to = std::move(from);
  EXPECT_EQ(to.number(), number);
  EXPECT_TRUE(is_open(number));
  EXPECT_FALSE(is_open(old)) << "what it held before";
}

TEST(Descriptor, IsGivenAwayOpen) {
  Descriptor file = some_file();
  const int number = file.release();
  EXPECT_FALSE(file.is_open());
  ASSERT_TRUE(is_open(number));
  ::close(number);
}

TEST(TakeDescriptor, ThrowsTheReasonOfAFailedCall) {
  errno = EMFILE;
  EXPECT_THAT(
      [] { take_descriptor(-1, "make a socket"); },
      testing::ThrowsMessage<std::system_error>(testing::AllOf(
          testing::StartsWith("cannot make a socket"), testing::HasSubstr("Too many open files"))));
}

TEST(Pipe, IsReadWithoutWaiting) {
  Pipe pipe = make_pipe();
  std::string buffer;
  EXPECT_EQ(read_some(pipe.read_end, buffer), ReadResult::nothing_yet);
  ASSERT_EQ(::write(pipe.write_end.number(), "abc", 3), 3);
  EXPECT_EQ(read_some(pipe.read_end, buffer), ReadResult::some);
  pipe.write_end.close();
  EXPECT_EQ(read_some(pipe.read_end, buffer), ReadResult::end);
  EXPECT_EQ(buffer, "abc");
}

}  // namespace
}  // namespace phalanx
