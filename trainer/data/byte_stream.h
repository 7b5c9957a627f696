// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/mapped_file.h"

namespace phalanx {

/// Files one after the other as one run of bytes, read in place.
///
/// Mapped, with a check of the file's length before each read. At random places of a cached file
/// that costs what pread does (about 4 microseconds for 257 bytes), without a copy in between. The
/// check turns a file that was cut short during training into an error; only one cut within those
/// microseconds is still a SIGBUS.
class ByteStream {
 public:
  /// `files` in this order. Throws UserError, beginning with `field`, for a file that cannot be
  /// read.
  ByteStream(const std::string& field, const std::vector<std::filesystem::path>& files);

  /// Bytes in all.
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  /// Widens bytes [offset, offset + out.size()), which must lie inside the stream, into `out`.
  /// Element is unsigned char or int64_t. Throws std::runtime_error when a file has shrunk.
  /// Thread-safe.
  template <class Element>
  void read(int64_t offset, std::span<Element> out) const;

 private:
  std::vector<MappedFile> files_;
  std::vector<int64_t> ends_;  // Of each file in the stream.
};

}  // namespace phalanx
