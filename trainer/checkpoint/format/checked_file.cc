// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/checked_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <vector>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/io/lfs_pointer.h"

namespace phalanx {

File open_checked(const std::filesystem::path& path, const ManifestFile& expected) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  File file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (const uint64_t size = file.size(); size != expected.size) {
    throw CheckpointError(fmt::format(
        "'{}' has {} bytes, its manifest says {}: it {}", path.string(), size, expected.size,
        lfs_pointer_problem(file).value_or("was cut short or replaced")));
  }
  std::vector<std::byte> head(expected.head_bytes);
  file.read(head, 0);
  if (checksum_of(head) == expected.head_checksum) return file;
  throw CheckpointError(fmt::format("'{}' is damaged: the checksum of its first {} bytes is wrong",
                                    path.string(), head.size()));
}

ManifestFile write_text(const std::filesystem::path& path, std::string_view text) {
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  file.write(text);
  file.sync();
  return {.size = text.size(), .head_bytes = text.size(), .head_checksum = checksum_of(text)};
}

std::filesystem::path path_of(const std::filesystem::path& folder, const Contents& contents,
                              const std::string& name) {
  const std::filesystem::path path = folder / name;
  if (contents.chunk_bytes != 0) return path;
  std::error_code error;
  std::filesystem::path followed = std::filesystem::canonical(path, error);
  if (error) throw IoError("open", path, error.value());
  return followed;
}

}  // namespace phalanx
