// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace phalanx {

LogFile::LogFile(const std::filesystem::path& path, int more_flags)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND | more_flags) {}

void LogFile::append(std::string_view record) {
  cut_off_half();
  const uint64_t before = file_.size();
  try {
    file_.append(record);
  } catch (const IoError&) {
    whole_ = before;  // File::append has cut the rest off, unless that failed as well
    throw;
  }
}

void LogFile::sync() {
  file_.sync();
  sync_folder(file_.path().parent_path());
}

void LogFile::cut_off_half() {
  if (!whole_) return;
  if (file_.size() > *whole_ && ::ftruncate(file_.descriptor(), static_cast<off_t>(*whole_)) != 0) {
    throw IoError("cut half a record off", file_.path(), errno);
  }
  whole_.reset();
}

}  // namespace phalanx
