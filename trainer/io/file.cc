// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/io/lfs_pointer.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// One write(2) moves at most 0x7ffff000 bytes.
constexpr size_t kLargestTransfer = size_t{1} << 30;

std::string_view advice(int error) {
  switch (error) {
    case ENOSPC:
      return "free some space on that file system";
    case EDQUOT:
      return "free some space within your quota, or have it raised";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and its folder";
    case EROFS:
      return "that file system is mounted read-only: choose another folder";
    case ENOENT:
      return "check that the path exists";
    case ENOTDIR:
      return "a part of the path is a file, not a folder: choose another path";
    case ELOOP:
      return "it is a symbolic link, which is not followed here";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    case EIO:
      return "the disk reports an error: check it and its cables or server";
    case ESTALE:
    case ETIMEDOUT:
      return "the file server does not answer: check the mount";
    default:
      return {};
  }
}

std::string message(std::string_view operation, const fs::path& path, int error) {
  std::string text =
      fmt::format("cannot {} '{}': {}", operation, path.string(), std::strerror(error));
  if (const std::string_view what_to_do = advice(error); !what_to_do.empty()) {
    text += fmt::format("; {}", what_to_do);
  }
  return text;
}

// Repeats a system call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

IoError::IoError(std::string_view operation, const fs::path& path, int error)
    : std::runtime_error(message(operation, path, error)), error_(error) {}

File::File(fs::path path, int flags, mode_t mode)
    : path_(std::move(path)),
      descriptor_(retry([&] { return ::open(path_.c_str(), flags | O_CLOEXEC, mode); })) {
  if (descriptor_.is_open()) return;
  throw IoError((flags & O_CREAT) != 0 ? "create" : "open", path_, errno);
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kLargestTransfer);
    const ssize_t written = retry([&] { return ::write(descriptor(), bytes.data(), size); });
    if (written < 0) throw IoError("write", path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void File::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void File::write_at(std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kLargestTransfer);
    const ssize_t written = retry(
        [&] { return ::pwrite(descriptor(), bytes.data(), size, static_cast<off_t>(offset)); });
    if (written < 0) throw IoError("write", path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void File::allocate(uint64_t size) {
  if (size == 0) return;
  if (retry([&] { return ::fallocate(descriptor(), 0, 0, static_cast<off_t>(size)); }) == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) throw IoError("write", path_, errno);
  if (retry([&] { return ::ftruncate(descriptor(), static_cast<off_t>(size)); }) == 0) return;
  throw IoError("write", path_, errno);
}

void File::append(std::string_view text) {
  const uint64_t before = size();
  try {
    write(text);
  } catch (...) {
    // The first error is the one to report; a torn end is known to readers.
    [[maybe_unused]] const int ignored = ::ftruncate(descriptor(), static_cast<off_t>(before));
    throw;
  }
}

void File::read(std::span<std::byte> bytes, uint64_t offset) const {
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kLargestTransfer);
    const ssize_t got = retry(
        [&] { return ::pread(descriptor(), bytes.data(), size, static_cast<off_t>(offset)); });
    if (got < 0) throw IoError("read", path_, errno);
    if (got == 0) {
      throw std::runtime_error(fmt::format("cannot read '{}': it ends at byte {}, {} bytes early",
                                           path_.string(), offset, bytes.size()));
    }
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor(), &status) != 0) throw IoError("examine", path_, errno);
  return static_cast<uint64_t>(status.st_size);
}

void File::sync() {
  if (retry([&] { return ::fsync(descriptor()); }) == 0) return;
  // Some file systems refuse to sync folders, and have nothing to sync there.
  if (errno == EINVAL) return;
  throw IoError("write to disk (fsync)", path_, errno);
}

// False where the file system has no such thing. Linux tells an error of writing once for each open
// file, so the fsync that follows would not: one that comes here must not be lost.
bool File::sync_range(uint64_t offset, uint64_t size, unsigned how) {
  if (retry([&] {
        return ::sync_file_range(descriptor(), static_cast<off_t>(offset), static_cast<off_t>(size),
                                 how);
      }) == 0) {
    return true;
  }
  constexpr std::array kCannot = {EINVAL, ENOSYS, EOPNOTSUPP, ESPIPE};
  if (std::find(kCannot.begin(), kCannot.end(), errno) != kCannot.end()) return false;
  throw IoError("write to disk", path_, errno);
}

void File::start_sync(uint64_t offset, uint64_t size) {
  sync_range(offset, size, SYNC_FILE_RANGE_WRITE);
}

void File::finish_sync(uint64_t offset, uint64_t size) {
  constexpr unsigned kWritten =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (!sync_range(offset, size, kWritten)) return;
  ::posix_fadvise(descriptor(), static_cast<off_t>(offset), static_cast<off_t>(size),
                  POSIX_FADV_DONTNEED);
}

bool File::try_lock() {
  if (retry([&] { return ::flock(descriptor(), LOCK_EX | LOCK_NB); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  throw IoError("lock", path_, errno);
}

void sync_folder(const fs::path& folder) {
  File(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY).sync();
}

void create_folders(const fs::path& folder) {
  std::error_code unknown;
  if (folder.empty() || fs::is_directory(folder, unknown)) return;
  // A trailing separator has an empty file name: its parent is the same folder.
  create_folders(folder.parent_path());
  if (!folder.has_filename()) return;
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    throw IoError("create the folder", folder, errno);
  }
  if (!fs::is_directory(folder, unknown)) throw IoError("create the folder", folder, ENOTDIR);
  sync_folder(folder.parent_path());
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  throw IoError(fmt::format("rename to '{}'", to.string()), from, errno);
}

void remove_path(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw IoError("remove", path, error.value());
}

std::string read_text(const fs::path& path, uint64_t max_size) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const File file(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw std::runtime_error(fmt::format("'{}' is not a regular file", path.string()));
  }
  const uint64_t size = file.size();
  if (size > max_size) {
    throw std::runtime_error(fmt::format("'{}' has {} bytes, more than the {} that such a file may",
                                         path.string(), size, max_size));
  }
  std::string text(size, '\0');
  file.read(std::as_writable_bytes(std::span(text)), 0);
  refuse_lfs_pointer(path, text);
  return text;
}

fs::path aside(const fs::path& path) {
  return fs::path(path).concat(fmt::format(".tmp-{}", ::getpid()));
}

namespace {

// The lock is for those who remove what the dead have left. A file that cannot be locked can be
// written all the same: some file systems keep no locks.
void write_locked(File& file, std::string_view text) {
  try {
    file.try_lock();
  } catch (const IoError&) {
  }
  file.write(text);
}

}  // namespace

void replace_file(const fs::path& path, std::string_view text) {
  const fs::path temporary = aside(path);
  try {
    File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    write_locked(file, text);
    file.sync();
    rename_path(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

}  // namespace phalanx
