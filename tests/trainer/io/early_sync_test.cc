// SPDX-License-Identifier: Apache-2.0
// What the disk could not write is told by whoever hears of it first: the system says it once for
// an open file, and an fsync that comes after it succeeds.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/io/file.h"

namespace {

int error_of_sync_file_range = 0;

}  // namespace

// In the place of libc's.
extern "C" int sync_file_range(int, off_t, off_t, unsigned) {
  errno = error_of_sync_file_range;
  return error_of_sync_file_range == 0 ? 0 : -1;
}

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class EarlySync : public testing::Test {
 protected:
  EarlySync() : file_(folder_ / "a", O_RDWR | O_CREAT) { file_.write("0123456789"); }
  ~EarlySync() override { error_of_sync_file_range = 0; }

  TemporaryFolder folder_;
  File file_;
};

TEST_F(EarlySync, WhatTheDiskRefusesIsAnError) {
  for (const int error : {EIO, ENOSPC, EDQUOT}) {
    error_of_sync_file_range = error;
    EXPECT_THAT([&] { file_.start_sync(0, 10); },
                ThrowsMessage<IoError>(HasSubstr("cannot write to disk")));
    EXPECT_THAT([&] { file_.finish_sync(0, 10); },
                ThrowsMessage<IoError>(HasSubstr("cannot write to disk")));
  }
}

TEST_F(EarlySync, AFileSystemThatCannotDoSoDoesItLater) {
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP, ESPIPE}) {
    error_of_sync_file_range = error;
    file_.start_sync(0, 10);
    file_.finish_sync(0, 10);
  }
  file_.sync();
  EXPECT_EQ(slurp(folder_ / "a"), "0123456789");
}

}  // namespace
}  // namespace phalanx
