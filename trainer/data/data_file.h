// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/open_files.h"
#include "trainer/io/file_list.h"

namespace phalanx {

/// Files of data, however many: each is opened when it is read, and few are open at a time
/// (open_files.h). They keep the lengths that they have now. Thread-safe.
class DataFiles {
 public:
  /// Each must be a regular file. Throws UserError, beginning with `field`, for one that cannot be
  /// read or is a Git LFS pointer.
  DataFiles(const std::string& field, FileList files);
  ~DataFiles();
  DataFiles(const DataFiles&) = delete;
  DataFiles& operator=(const DataFiles&) = delete;

  size_t count() const { return files_.size(); }
  std::filesystem::path path(size_t file) const { return files_[file]; }
  uint64_t size(size_t file) const { return states_[file].size; }

  /// Copies the bytes of a file from `offset` on, which must lie inside. Throws BrokenSampleError
  /// when they are no longer there, when the file is gone, or when another one has its name;
  /// std::system_error.
  void read(size_t file, uint64_t offset, std::span<unsigned char> out) const;

  /// A file that is mapped, for as long as `file` is kept.
  struct Mapped {
    std::shared_ptr<const OpenFile> file;
    std::span<const unsigned char> bytes;
  };

  /// All bytes of a file. Throws as `read`; where the file becomes shorter afterwards, reading
  /// kills the process (SIGBUS): `read` is for what is read all the time.
  Mapped map(size_t file) const;

 private:
  struct State {
    uint64_t size;
    uint64_t inode;
  };

  std::shared_ptr<const OpenFile> open(size_t file) const;
  [[noreturn]] void fail_shorter(size_t file, uint64_t now) const;

  const FileList files_;
  const uint64_t number_;  // The number of the first file in OpenFiles.
  std::vector<State> states_;
};

/// One of several files, or one alone.
class DataFile {
 public:
  DataFile(std::shared_ptr<const DataFiles> files, size_t index)
      : files_(std::move(files)), index_(index) {}
  /// Throws as DataFiles.
  DataFile(const std::string& field, const std::filesystem::path& path)
      : DataFile(std::make_shared<const DataFiles>(field, FileList{path}), 0) {}

  std::filesystem::path path() const { return files_->path(index_); }
  uint64_t size() const { return files_->size(index_); }
  /// See DataFiles.
  void read(uint64_t offset, std::span<unsigned char> out) const {
    files_->read(index_, offset, out);
  }
  DataFiles::Mapped map() const { return files_->map(index_); }

 private:
  std::shared_ptr<const DataFiles> files_;
  size_t index_;
};

}  // namespace phalanx
