// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/trainer/io/file_size_limit.h"
#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

// The errno of the IoError that appending throws; 0 for none.
int append_error(LogFile& log, const std::string& record) {
  try {
    log.append(record);
  } catch (const IoError& error) {
    return error.error();
  }
  return 0;
}

TEST(LogFile, GoesOnWhereAWriteHasFailedInItsMidst) {
  const TemporaryFolder folder;
  LogFile log(folder / "log");
  log.append("first\n");
  {
    const FileSizeLimit limit(10);
    EXPECT_EQ(append_error(log, "second\n"), EFBIG);
    EXPECT_EQ(append_error(log, "third\n"), EFBIG);
  }
  log.append("fourth\n");
  EXPECT_EQ(slurp(folder / "log"), "first\nfourth\n");
}

// A file in memory that may grow and not shrink.
TEST(LogFile, WritesNothingBehindAHalfThatCannotBeCutOff) {
  const int memory = ::memfd_create("log", MFD_ALLOW_SEALING);
  ASSERT_GE(memory, 0);
  ASSERT_EQ(::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(memory);
  LogFile log(path);
  log.append("first\n");
  {
    const FileSizeLimit limit(10);
    EXPECT_EQ(append_error(log, "second\n"), EFBIG);
  }
  EXPECT_EQ(slurp(path), "first\nseco");
  EXPECT_EQ(append_error(log, "third\n"), EPERM);
  EXPECT_EQ(slurp(path), "first\nseco");
  ::close(memory);
}

TEST(LogFile, GoesOnBehindWhatIsThere) {
  const TemporaryFolder folder;
  LogFile(folder / "log").append("first\n");
  LogFile(folder / "log").append("second\n");
  EXPECT_EQ(slurp(folder / "log"), "first\nsecond\n");
  EXPECT_THROW(LogFile(folder / "log", O_EXCL), IoError);
}

}  // namespace
}  // namespace phalanx
