// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/io/lfs_pointer.h"

namespace phalanx {
namespace {

[[noreturn]] void fail(int error, const std::filesystem::path& path) {
  throw std::system_error(error, std::generic_category(), path.string());
}

}  // namespace

// Without O_NONBLOCK a pipe would wait for a writer instead of being refused below.
MappedFile::MappedFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (!descriptor_.is_open() || ::fstat(descriptor_.number(), &status) != 0) fail(errno, path_);
  if (S_ISDIR(status.st_mode)) fail(EISDIR, path_);
  if (!S_ISREG(status.st_mode)) fail(EINVAL, path_);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // mmap takes no empty range.
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_.number(), 0);
  if (mapped == MAP_FAILED) fail(errno, path_);
  data_ = static_cast<const unsigned char*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::move(other.descriptor_)),
      size_(std::exchange(other.size_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

std::span<const unsigned char> MappedFile::bytes() const {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) fail(errno, path_);
  if (static_cast<size_t>(status.st_size) < size_) fail_shorter();
  return {data_, size_};
}

void MappedFile::read(size_t offset, std::span<unsigned char> out) const {
  while (!out.empty()) {
    const ssize_t count =
        ::pread(descriptor_.number(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno, path_);
    if (count == 0) fail_shorter();
    offset += static_cast<size_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
}

void MappedFile::fail_shorter() const {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) fail(errno, path_);
  throw BrokenSampleError(
      {.source = path_.string(),
       .kind = "a file that became shorter",
       .message = "'" + path_.string() + "' shrank from " + std::to_string(size_) + " to " +
                  std::to_string(status.st_size) + " bytes while it was in use"});
}

MappedFile map_file(const std::string& field, const std::filesystem::path& path) {
  try {
    MappedFile file(path);
    const auto bytes = file.bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto problem = lfs_pointer_problem(text);
    if (problem) throw UserError(field + ": '" + path.string() + "' " + *problem);
    return file;
  } catch (const std::system_error& error) {
    throw UserError(field + ": cannot read '" + path.string() + "': " + error.code().message());
  }
}

}  // namespace phalanx
