#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace phalanx {
namespace {

[[noreturn]] void fail(int descriptor, int error, const std::filesystem::path& path) {
  if (descriptor >= 0) close(descriptor);
  throw std::system_error(error, std::generic_category(), path.string());
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK a pipe would wait for a writer instead of being refused below.
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) fail(descriptor_, errno, path_);
  if (S_ISDIR(status.st_mode)) fail(descriptor_, EISDIR, path_);
  if (!S_ISREG(status.st_mode)) fail(descriptor_, EINVAL, path_);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // mmap takes no empty range.
  void* mapped = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) fail(descriptor_, errno, path_);
  data_ = static_cast<const unsigned char*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<unsigned char*>(data_), size_);
  if (descriptor_ >= 0) close(descriptor_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

std::span<const unsigned char> MappedFile::bytes() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) {
    throw std::system_error(errno, std::generic_category(), path_.string());
  }
  if (static_cast<size_t>(status.st_size) < size_) {
    throw std::runtime_error("'" + path_.string() + "' shrank from " + std::to_string(size_) +
                             " to " + std::to_string(status.st_size) +
                             " bytes while it was in use");
  }
  return {data_, size_};
}

}  // namespace phalanx
