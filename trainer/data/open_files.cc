// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/open_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace phalanx {
namespace {

[[noreturn]] void fail(int error, const std::filesystem::path& path) {
  throw std::system_error(error, std::generic_category(), path.string());
}

}  // namespace

// Without O_NONBLOCK a pipe would wait for a writer instead of being refused below.
OpenFile::OpenFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (!descriptor_.is_open() || ::fstat(descriptor_.number(), &status) != 0) fail(errno, path_);
  if (S_ISDIR(status.st_mode)) fail(EISDIR, path_);
  if (!S_ISREG(status.st_mode)) fail(EINVAL, path_);
  inode_ = status.st_ino;
}

OpenFile::~OpenFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), mapped_);
}

uint64_t OpenFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) fail(errno, path_);
  return static_cast<uint64_t>(status.st_size);
}

size_t OpenFile::read(uint64_t offset, std::span<unsigned char> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(descriptor_.number(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno, path_);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

std::span<const unsigned char> OpenFile::bytes(size_t size) const {
  const std::lock_guard lock(mapping_);
  if (data_ == nullptr && size > 0) {  // mmap takes no empty range.
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_.number(), 0);
    if (mapped == MAP_FAILED) fail(errno, path_);
    data_ = static_cast<const unsigned char*>(mapped);
    mapped_ = size;
  }
  return {data_, size};
}

OpenFiles& OpenFiles::instance() {
  // Never destroyed: threads that still read may outlive what is static.
  static auto* const files = new OpenFiles;
  return *files;
}

uint64_t OpenFiles::new_numbers(uint64_t count) {
  const std::lock_guard lock(mutex_);
  return std::exchange(next_, next_ + count);
}

std::shared_ptr<const OpenFile> OpenFiles::find(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return nullptr;
  files_.splice(files_.begin(), files_, found->second);
  return found->second->second;
}

std::shared_ptr<const OpenFile> OpenFiles::open(uint64_t number,
                                                const std::filesystem::path& path) {
  if (auto file = find(number)) return file;
  auto opened = std::make_shared<const OpenFile>(path);  // May take long: without the lock.
  std::shared_ptr<const OpenFile> dropped;               // Closed without it, too.
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = by_number_.try_emplace(number);
  if (!is_new) return found->second->second;  // Another thread was quicker.
  files_.emplace_front(number, opened);
  found->second = files_.begin();
  if (files_.size() > kMost) {
    by_number_.erase(files_.back().first);
    dropped = std::move(files_.back().second);
    files_.pop_back();
  }
  return opened;
}

void OpenFiles::forget(uint64_t first, uint64_t count) {
  const std::lock_guard lock(mutex_);
  for (auto file = files_.begin(); file != files_.end();) {
    const bool is_of_them = file->first >= first && file->first - first < count;
    if (is_of_them) by_number_.erase(file->first);
    file = is_of_them ? files_.erase(file) : std::next(file);
  }
}

size_t OpenFiles::size() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

}  // namespace phalanx
