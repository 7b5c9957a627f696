// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/file_list.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace phalanx {

FileList::FileList() : data_(std::make_shared<Data>()) {}

FileList::FileList(std::initializer_list<std::filesystem::path> files) : FileList() {
  for (const auto& file : files) add(file.native());
}

FileList::FileList(const std::vector<std::filesystem::path>& files) : FileList() {
  for (const auto& file : files) add(file.native());
}

void FileList::add(std::string_view path) {
  Data& data = own();
  data.names += path;
  data.ends.push_back(data.names.size());
}

void FileList::add(const FileList& files) {
  if (empty()) {
    *this = files;
    return;
  }
  for (std::size_t file = 0; file < files.size(); ++file) add(files.name(file));
}

void FileList::sort() {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [this](std::uint32_t a, std::uint32_t b) { return name(a) < name(b); };
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::sort(order.begin(), order.end(), before);
  take(order);
}

void FileList::keep_if(const std::vector<bool>& keep) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t file = 0; file < size(); ++file) {
    if (keep[file]) kept.push_back(file);
  }
  if (kept.size() < size()) take(kept);
}

std::string_view FileList::name(std::size_t file) const {
  const std::uint64_t begin = file == 0 ? 0 : data_->ends[file - 1];
  return std::string_view(data_->names).substr(begin, data_->ends[file] - begin);
}

// A copy must not see what is added here.
FileList::Data& FileList::own() {
  if (data_.use_count() > 1) data_ = std::make_shared<Data>(*data_);
  return *data_;
}

void FileList::take(const std::vector<std::uint32_t>& files) {
  auto taken = std::make_shared<Data>();
  taken->names.reserve(data_->names.size());
  taken->ends.reserve(files.size());
  for (const std::uint32_t file : files) {
    taken->names += name(file);
    taken->ends.push_back(taken->names.size());
  }
  data_ = std::move(taken);
}

}  // namespace phalanx
