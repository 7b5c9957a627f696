// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// A regular file that is open for reading, and mapped once that is asked for. Thread-safe.
class OpenFile {
 public:
  /// Throws std::system_error, with the path, for what cannot be opened and is no regular file.
  explicit OpenFile(std::filesystem::path path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Bytes that it has now. Throws std::system_error.
  uint64_t size() const;
  /// Which file it is: another one under the same name has another number.
  uint64_t inode() const { return inode_; }

  /// Copies bytes from `offset` on; how many is less than asked for at the end of the file alone.
  /// Throws std::system_error.
  size_t read(uint64_t offset, std::span<unsigned char> out) const;

  /// The first `size` bytes, mapped: the file must have them, or reading them kills the process.
  /// They are there as long as this is. `size` is the same in all calls. Throws std::system_error.
  std::span<const unsigned char> bytes(size_t size) const;

 private:
  const std::filesystem::path path_;
  Descriptor descriptor_;
  uint64_t inode_ = 0;
  mutable std::mutex mapping_;
  mutable size_t mapped_ = 0;
  mutable const unsigned char* data_ = nullptr;
};

/// The files that data sets have open: at most kMost, those that were read last. A process may have
/// some thousand open files, and some ten thousand maps; a data set may have a million files.
/// Thread-safe.
class OpenFiles {
 public:
  static constexpr size_t kMost = 128;

  /// That of this process.
  static OpenFiles& instance();

  /// The first of `count` numbers that nobody else has; `forget` gives them back.
  uint64_t new_numbers(uint64_t count);

  /// The file of a number: the one that is open, or `path`, opened now. Throws as OpenFile.
  std::shared_ptr<const OpenFile> open(uint64_t number, const std::filesystem::path& path);
  /// The one that is open, or nothing.
  std::shared_ptr<const OpenFile> find(uint64_t number);

  /// Closes the files of numbers [first, first + count), once nobody reads them any more.
  void forget(uint64_t first, uint64_t count);

  /// How many are open here.
  size_t size() const;

 private:
  using Entry = std::pair<uint64_t, std::shared_ptr<const OpenFile>>;

  mutable std::mutex mutex_;
  uint64_t next_ = 0;
  std::list<Entry> files_;  // The one that was read last is the first.
  std::unordered_map<uint64_t, std::list<Entry>::iterator> by_number_;
};

}  // namespace phalanx
