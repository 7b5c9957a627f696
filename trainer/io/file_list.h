// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Paths of many files, in little more memory than their names take: a std::filesystem::path takes
/// several times as much. A copy shares the names.
class FileList {
 public:
  FileList();
  FileList(std::initializer_list<std::filesystem::path> files);
  FileList(const std::vector<std::filesystem::path>& files);  // NOLINT(*-explicit-*): the same

  void add(std::string_view path);
  void add(const FileList& files);

  /// In bytewise order.
  void sort();

  /// Leaves only the files that `keep` is true for, by number.
  void keep_if(const std::vector<bool>& keep);

  std::size_t size() const { return data_->ends.size(); }
  bool empty() const { return data_->ends.empty(); }

  /// The path of a file, as long as the list does not change.
  std::string_view name(std::size_t file) const;
  std::filesystem::path operator[](std::size_t file) const { return name(file); }

  /// Goes over the paths.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::filesystem::path;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;

    Iterator(const FileList& list, std::size_t file) : list_(&list), file_(file) {}
    value_type operator*() const { return (*list_)[file_]; }
    Iterator& operator++() {
      ++file_;
      return *this;
    }
    Iterator operator++(int) { return {*list_, file_++}; }
    bool operator==(const Iterator& other) const { return file_ == other.file_; }

   private:
    const FileList* list_;
    std::size_t file_;
  };
  using value_type = std::filesystem::path;
  using const_iterator = Iterator;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  struct Data {
    std::string names;                // One after the other,
    std::vector<std::uint64_t> ends;  // and where each ends.
  };

  Data& own();
  void take(const std::vector<std::uint32_t>& files);

  std::shared_ptr<Data> data_;
};

}  // namespace phalanx
