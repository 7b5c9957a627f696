// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// A file mapped read-only into memory for as long as this lives.
class MappedFile {
 public:
  /// `path` must be a regular file; an empty one maps to no bytes. Throws std::system_error with
  /// the path.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  size_t size() const { return size_; }

  /// All bytes. Throws BrokenSampleError when the file has become shorter since it was mapped:
  /// reading past its end would kill the process (SIGBUS), as it does when the file becomes shorter
  /// right afterwards: `read` is for what is read all the time. Thread-safe.
  std::span<const unsigned char> bytes() const;

  /// Copies the bytes from `offset` on, which must lie inside. Throws BrokenSampleError when they
  /// are no longer there, and std::system_error. Thread-safe.
  void read(size_t offset, std::span<unsigned char> out) const;

 private:
  [[noreturn]] void fail_shorter() const;

  std::filesystem::path path_;
  Descriptor descriptor_;
  size_t size_ = 0;
  const unsigned char* data_ = nullptr;
};

/// Maps a file that a config field names. Throws UserError, beginning with the field, where it
/// cannot be read or is a Git LFS pointer.
MappedFile map_file(const std::string& field, const std::filesystem::path& path);

}  // namespace phalanx
