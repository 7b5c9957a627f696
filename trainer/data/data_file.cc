// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/data_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/data/many_files.h"
#include "trainer/io/files_of_data.h"
#include "trainer/io/lfs_pointer.h"

namespace phalanx {
namespace {

std::optional<std::string> lfs_pointer_problem(const OpenFile& file) {
  const uint64_t size = file.size();
  if (size > kLargestLfsPointer) return std::nullopt;
  std::string text(size, '\0');
  file.read(0, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
  return phalanx::lfs_pointer_problem(text);
}

}  // namespace

DataFiles::DataFiles(const std::string& field, FileList files)
    : files_(std::move(files)), number_(OpenFiles::instance().new_numbers(files_.size())) {
  note_files_of_data(files_);
  states_.reserve(count());
  look_at_each("opening data", count(), [&](size_t file) {
    const auto refuse = [&](const std::string& problem) {
      OpenFiles::instance().forget(number_, count());
      throw UserError(fmt::format("{}: {}", field, problem));
    };
    try {
      const auto opened = OpenFiles::instance().open(number_ + file, path(file));
      states_.push_back({.size = opened->size(), .inode = opened->inode()});
      const auto problem = lfs_pointer_problem(*opened);
      if (problem) refuse(fmt::format("'{}' {}", path(file).string(), *problem));
    } catch (const std::system_error& error) {
      refuse(fmt::format("cannot read '{}': {}", path(file).string(), error.code().message()));
    }
  });
}

DataFiles::~DataFiles() { OpenFiles::instance().forget(number_, count()); }

void DataFiles::read(size_t file, uint64_t offset, std::span<unsigned char> out) const {
  const auto opened = open(file);
  if (opened->read(offset, out) < out.size()) fail_shorter(file, opened->size());
}

DataFiles::Mapped DataFiles::map(size_t file) const {
  auto opened = open(file);
  if (const uint64_t now = opened->size(); now < size(file)) fail_shorter(file, now);
  const auto bytes = opened->bytes(size(file));
  return {.file = std::move(opened), .bytes = bytes};
}

// One that was closed meanwhile must still be the same.
std::shared_ptr<const OpenFile> DataFiles::open(size_t file) const {
  const auto fail = [&](const char* kind, const char* problem) {
    throw BrokenSampleError({.source = path(file).string(),
                             .kind = kind,
                             .message = fmt::format("'{}' {}", path(file).string(), problem)});
  };
  std::shared_ptr<const OpenFile> opened = OpenFiles::instance().find(number_ + file);
  try {
    if (!opened) opened = OpenFiles::instance().open(number_ + file, path(file));
  } catch (const std::system_error& error) {
    if (error.code().value() != ENOENT) throw;
    fail("a file that is gone", "was removed while it was in use");
  }
  if (opened->inode() != states_[file].inode) {
    fail("a file that was replaced", "was replaced by another file while it was in use");
  }
  return opened;
}

void DataFiles::fail_shorter(size_t file, uint64_t now) const {
  throw BrokenSampleError(
      {.source = path(file).string(),
       .kind = "a file that became shorter",
       .message = fmt::format("'{}' shrank from {} to {} bytes while it was in use",
                              path(file).string(), size(file), now)});
}

}  // namespace phalanx
