// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// A file operation that the system refused: the message names the operation, the path, the
/// system's reason and what to do about it.
class IoError : public std::runtime_error {
 public:
  /// `operation` completes "cannot …": "write", "rename to 'x'". `error` is an errno.
  IoError(std::string_view operation, const std::filesystem::path& path, int error);

  int error() const { return error_; }

 private:
  int error_;
};

/// An open file or folder; closed at scope exit. Every function throws IoError and goes on after
/// an interrupting signal.
class File {
 public:
  /// Opens with open(2)'s flags; O_CLOEXEC is added.
  File(std::filesystem::path path, int flags, mode_t mode = 0644);

  /// Writes everything, in as many calls as that takes. A span up to 2 GiB is one write(2) as long
  /// as the system takes it whole.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  /// Writes everything at the end of a file opened with O_APPEND, or nothing: what a failed write
  /// has left is cut off again before the IoError.
  void append(std::string_view text);

  /// Writes everything from `offset` on; several threads and processes may do so at a time.
  void write_at(std::span<const std::byte> bytes, uint64_t offset);

  /// Makes the file so long and, where the file system can, has the disk keep room for all of it:
  /// what is missing is told now, not in the middle.
  void allocate(uint64_t size);

  /// Has the system begin to write these bytes to the disk, so that sync() need wait for less. Does
  /// not wait for them. Where the file system cannot do that, nothing happens.
  void start_sync(uint64_t offset, uint64_t size);

  /// Waits until what start_sync began is written, and has the system forget it: memory that it
  /// took is free for what is written next. sync() is still needed; an error that is thrown here it
  /// would not tell of any more.
  void finish_sync(uint64_t offset, uint64_t size);

  /// Fills the whole span from `offset` on; an end of file before that is an error.
  void read(std::span<std::byte> bytes, uint64_t offset) const;

  /// Size in bytes.
  uint64_t size() const;

  /// Waits until what was written, or a folder's entries, would survive a power cut.
  void sync();

  /// Tries to become the only holder of this file's lock, which lasts until it is closed or the
  /// process dies, however it dies. False when another open file holds it.
  bool try_lock();

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_.number(); }

 private:
  bool sync_range(uint64_t offset, uint64_t size, unsigned how);

  std::filesystem::path path_;
  Descriptor descriptor_;
};

/// Fsyncs a folder: its entries survive a power cut.
void sync_folder(const std::filesystem::path& folder);

/// Creates a folder and its missing parents durably.
void create_folders(const std::filesystem::path& folder);

/// rename(2).
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

/// Removes a file, or a folder with all it holds; nothing happens when there is none.
void remove_path(const std::filesystem::path& path);

/// The text of a regular file of at most `max_size` bytes.
std::string read_text(const std::filesystem::path& path, uint64_t max_size = uint64_t{1} << 30);

/// The name under which a process prepares `path`: "<path>.tmp-<pid>".
std::filesystem::path aside(const std::filesystem::path& path);

/// Replaces a small file durably and at once: a reader sees the old text or the new one. Written
/// aside, fsynced, renamed, folder fsynced; nothing is left behind when that fails.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace phalanx
