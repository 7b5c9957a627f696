// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/document_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;
// Its tokens, perhaps a byte each, are counted in 32 bits.
constexpr size_t kLargestDocument = (size_t{1} << 31) - (size_t{1} << 20);

// What ends a document; nothing: the end of the file.
std::string_view separator_of(DocumentUnit unit) {
  switch (unit) {
    case DocumentUnit::line:
      return "\n";
    case DocumentUnit::paragraph:
      return "\n\n";
    case DocumentUnit::file:
      break;
  }
  return {};
}

}  // namespace

bool is_json_lines(const std::filesystem::path& path) {
  std::filesystem::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name.replace_extension();
  return name.extension() == ".jsonl";
}

DocumentReader::DocumentReader(std::vector<std::filesystem::path> files, DocumentUnit unit,
                               Position from)
    : files_(std::move(files)), unit_(unit), position_(from) {
  for (int64_t file = 0; file < position_.file; ++file) {
    of_files_before_ += std::filesystem::file_size(files_[file]);
  }
}

std::vector<Document> DocumentReader::next(int64_t bytes) {
  std::vector<Document> documents;
  for (int64_t found = 0; found < bytes;) {
    Document document;
    if (!open_next()) break;
    if (!read_document(document)) {
      close_file();
      continue;
    }
    found += static_cast<int64_t>(document.text.size()) + 1;  // Empty ones take memory, too.
    documents.push_back(std::move(document));
  }
  return documents;
}

uint64_t DocumentReader::read_of_files() const {
  return of_files_before_ + (stream_ ? stream_->read_of_file() : 0);
}

// False when all files have been read.
bool DocumentReader::open_next() {
  if (stream_) return true;
  if (position_.file == static_cast<int64_t>(files_.size())) return false;
  stream_ = open_text(files_[position_.file]);
  stream_->skip(static_cast<uint64_t>(position_.offset));
  return true;
}

void DocumentReader::close_file() {
  of_files_before_ += stream_->read_of_file();
  stream_.reset();
  position_ = {.file = position_.file + 1, .offset = 0};
}

// Reads on; false at the end of the file.
bool DocumentReader::fill() {
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t size = buffer_.size();
  if (size > kLargestDocument) {
    throw UserError(
        fmt::format("'{}' has a document of more than {} bytes, from byte {} on: cut it "
                    "into smaller ones",
                    files_[position_.file].string(), kLargestDocument, position_.offset));
  }
  buffer_.resize(size + kReadAtOnce);
  const size_t count = stream_->read(std::span(buffer_).subspan(size));
  buffer_.resize(size + count);
  return count > 0;
}

void DocumentReader::skip_empty_lines() {
  do {
    const size_t end = std::min(buffer_.find_first_not_of('\n', begin_), buffer_.size());
    position_.offset += static_cast<int64_t>(end - begin_);
    begin_ = end;
  } while (begin_ == buffer_.size() && fill());
}

// False where the file has no further document.
bool DocumentReader::read_document(Document& document) {
  const bool is_json = is_json_lines(files_[position_.file]);
  const std::string_view separator = separator_of(is_json ? DocumentUnit::line : unit_);
  document.file = position_.file;
  if (separator == separator_of(DocumentUnit::paragraph)) skip_empty_lines();
  document.offset = position_.offset;
  size_t searched = 0;  // Bytes behind begin_.
  while (true) {
    const size_t end =
        separator.empty() ? std::string::npos : buffer_.find(separator, begin_ + searched);
    if (end != std::string::npos) {
      document.text = buffer_.substr(begin_, end - begin_);
      position_.offset += static_cast<int64_t>(end + separator.size() - begin_);
      begin_ = end + separator.size();
      return true;
    }
    const size_t left = buffer_.size() - begin_;
    searched = left - std::min(left, separator.size());
    if (fill()) continue;
    if (buffer_.empty()) return false;
    position_.offset += static_cast<int64_t>(buffer_.size());
    document.text = std::exchange(buffer_, {});
    return true;
  }
}

}  // namespace phalanx
