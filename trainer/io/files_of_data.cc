// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/files_of_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <vector>

#include "trainer/base/xxh3.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Bytes read at each end of a file: files of one size that differ mostly differ there, and a data
// set may take hours to read.
constexpr uint64_t kEnd = 1 << 20;
// Beyond so many files their sizes have to do.
constexpr size_t kMostChecksums = 10'000;

struct Noted {
  std::mutex mutex;
  std::vector<FileList> lists;
};

Noted& noted() {
  static auto* const all = new Noted;  // threads that open files may outlive what is static
  return *all;
}

std::string checksum_of_ends(const fs::path& path, uint64_t size) {
  std::ifstream file(path, std::ios::binary);
  Xxh3 hash;
  std::string bytes(std::min(size, kEnd), '\0');
  for (const uint64_t begin : {uint64_t{0}, size - bytes.size()}) {
    file.seekg(static_cast<std::streamoff>(begin));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    hash.add(bytes);
  }
  return file ? hash.digits64() : "unreadable";
}

std::string describe(const fs::path& path, bool with_checksum) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) return fmt::format("'{}': {}\n", path.string(), error.message());
  if (!with_checksum) return fmt::format("'{}', {} bytes\n", path.string(), size);
  return fmt::format("'{}', {} bytes, checksum of its ends {}\n", path.string(), size,
                     checksum_of_ends(path, size));
}

}  // namespace

void note_files_of_data(const FileList& files) {
  const std::lock_guard lock(noted().mutex);
  noted().lists.push_back(files);
}

std::string files_of_data() {
  const std::lock_guard lock(noted().mutex);
  std::string text;
  size_t count = 0;
  for (const FileList& files : noted().lists) {
    for (const fs::path path : files) text += describe(path, count++ < kMostChecksums);
  }
  return text;
}

}  // namespace phalanx
