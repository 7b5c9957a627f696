// SPDX-License-Identifier: Apache-2.0
// The calls of libc by which a program changes files, for LD_PRELOAD: they go through FaultLayer
// where it watches the file, and are plain system calls elsewhere.

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <string>

#include "tests/faults/files/fault_layer.h"

namespace file_faults {
namespace {

std::string path_of(int file) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const int error = errno;
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  errno = error;
  return size < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(size));
}

// Absolute, as seen from a folder that is open.
std::string path_at(int folder, const char* path) {
  if (path[0] == '/') return path;
  std::string base;
  if (folder == AT_FDCWD) {
    std::array<char, PATH_MAX> current{};
    if (::syscall(SYS_getcwd, current.data(), current.size()) > 0) base = current.data();
  } else {
    base = path_of(folder);
  }
  return base + "/" + path;
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) status = {};
  return status;
}

ino_t inode_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

bool watches(const std::string& path) { return FaultLayer::instance().watches(path); }

int open_file(int folder, const char* given, int flags, mode_t mode) {
  const auto call = [&] { return ::syscall(SYS_openat, folder, given, flags, mode); };
  if ((flags & (O_CREAT | O_TRUNC)) == 0) return static_cast<int>(call());
  const std::string path = path_at(folder, given);
  if (!watches(path)) return static_cast<int>(call());
  const bool exists = status_of(path).st_ino != 0;
  if (exists && (flags & O_TRUNC) == 0) return static_cast<int>(call());
  return static_cast<int>(
      FaultLayer::instance().perform({.kind = exists ? "truncate" : "create",
                                      .path = path,
                                      .call = [&](std::size_t) { return call(); }},
                                     [&](long file) {
                                       return Change{.kind = exists ? "truncate" : "create",
                                                     .inode = inode_of(static_cast<int>(file))};
                                     }));
}

ssize_t write_file(int file, const void* data, std::size_t bytes) {
  const auto call = [=](std::size_t part) { return ::syscall(SYS_write, file, data, part); };
  const std::string path = path_of(file);
  if (!watches(path)) return call(bytes);
  return FaultLayer::instance().perform(
      {.kind = "write", .path = path, .bytes = bytes, .call = call}, [&](long written) {
        return Change{.kind = "write",
                      .inode = inode_of(file),
                      .offset = ::lseek(file, 0, SEEK_CUR) - written,
                      .data = {static_cast<const char*>(data), static_cast<std::size_t>(written)}};
      });
}

ssize_t write_file_at(int file, const void* data, std::size_t bytes, off_t offset) {
  const auto call = [=](std::size_t part) {
    return ::syscall(SYS_pwrite64, file, data, part, offset);
  };
  const std::string path = path_of(file);
  if (!watches(path)) return call(bytes);
  return FaultLayer::instance().perform(
      {.kind = "pwrite", .path = path, .bytes = bytes, .call = call}, [&](long written) {
        return Change{.kind = "write",
                      .inode = inode_of(file),
                      .offset = offset,
                      .data = {static_cast<const char*>(data), static_cast<std::size_t>(written)}};
      });
}

// Everything that has one open file and no data: `change` is what the journal calls it.
template <class Call>
int change_file(std::string_view kind, std::string_view change, int file, off_t size, Call call) {
  const std::string path = path_of(file);
  if (!watches(path)) return static_cast<int>(call());
  return static_cast<int>(FaultLayer::instance().perform(
      {.kind = kind, .path = path, .call = [&](std::size_t) { return call(); }},
      [&](long) { return Change{.kind = change, .inode = inode_of(file), .offset = size}; }));
}

// Everything that has a path, and may have another one.
template <class Call>
int change_path(std::string_view kind, const std::string& path, const std::string& other,
                Call call) {
  if (!watches(path) && !watches(other)) return static_cast<int>(call());
  return static_cast<int>(FaultLayer::instance().perform(
      {.kind = kind, .path = path, .other = other, .call = [&](std::size_t) { return call(); }},
      [&](long) {
        return Change{.kind = kind, .inode = kind == "mkdir" ? status_of(path).st_ino : 0};
      }));
}

int rename_file(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return change_path((flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename",
                     path_at(from_folder, from), path_at(to_folder, to), [&] {
                       return ::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
                     });
}

int remove_entry(int folder, const char* path, int flags) {
  return change_path((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", path_at(folder, path), "",
                     [&] { return ::syscall(SYS_unlinkat, folder, path, flags); });
}

int resize(int file, off_t size) {
  return change_file("ftruncate", "truncate", file, size,
                     [&] { return ::syscall(SYS_ftruncate, file, size); });
}

int allocate(int file, int mode, off_t offset, off_t size) {
  return change_file("fallocate", "extend", file, offset + size,
                     [&] { return ::syscall(SYS_fallocate, file, mode, offset, size); });
}

int lock_file(int file, int operation) {
  const int error = watches(path_of(file)) ? FaultLayer::instance().lock_error() : 0;
  if (error == 0) return static_cast<int>(::syscall(SYS_flock, file, operation));
  errno = error;
  return -1;
}

int make_folder(int folder, const char* path, mode_t mode) {
  return change_path("mkdir", path_at(folder, path), "",
                     [&] { return ::syscall(SYS_mkdirat, folder, path, mode); });
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace file_faults

extern "C" {

using namespace file_faults;  // NOLINT(google-build-using-namespace): these functions have no room
                              // of their own

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_file(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_file(folder, path, flags, mode);
}

int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

ssize_t write(int file, const void* data, size_t bytes) { return write_file(file, data, bytes); }

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  return write_file_at(file, data, bytes, offset);
}

ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
  return write_file_at(file, data, bytes, offset);
}

int fallocate(int file, int mode, off_t offset, off_t size) {
  return allocate(file, mode, offset, size);
}

int ftruncate(int file, off_t size) noexcept { return resize(file, size); }

int fsync(int file) {
  return change_file("fsync", "sync", file, 0, [&] { return ::syscall(SYS_fsync, file); });
}

int fdatasync(int file) {
  return change_file("fdatasync", "sync", file, 0, [&] { return ::syscall(SYS_fdatasync, file); });
}

int rename(const char* from, const char* to) noexcept {
  return rename_file(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return rename_file(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept { return remove_entry(AT_FDCWD, path, 0); }

int unlinkat(int folder, const char* path, int flags) noexcept {
  return remove_entry(folder, path, flags);
}

int rmdir(const char* path) noexcept { return remove_entry(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) noexcept {
  const bool is_folder = S_ISDIR(status_of(path_at(AT_FDCWD, path)).st_mode);
  return remove_entry(AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0);
}

int flock(int file, int operation) noexcept { return lock_file(file, operation); }

int mkdir(const char* path, mode_t mode) noexcept { return make_folder(AT_FDCWD, path, mode); }

}  // extern "C"
