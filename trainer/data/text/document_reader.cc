// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/document_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/data/text/json_value_scanner.h"

namespace phalanx {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;
constexpr size_t kWindow = size_t{1} << 20;  // A longer document comes in parts.
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

DocumentReader::DocumentReader(FileList files, DocumentUnit unit, Position from, LastCut last_cut,
                               LookAtBegin look)
    : files_(std::move(files)),
      unit_(unit),
      last_cut_(std::move(last_cut)),
      look_(std::move(look)),
      position_(from),
      part_(kReadAtOnce) {
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

bool DocumentReader::open_next() {
  if (stream_) return true;
  if (position_.file == static_cast<int64_t>(files_.size())) return false;
  const std::filesystem::path path = files_[position_.file];
  form_ = form_of(path);
  is_plain_json_ = form_ == TextForm::plain && position_.offset == 0 && has_json_name(path);
  stream_ = open_text(path);
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
  const size_t count = stream_->read(part_);
  buffer_.append(part_.data(), count);
  if (look_ && size == 0 && position_.offset == 0) look_(files_[position_.file], buffer_);
  return count > 0;
}

void DocumentReader::skip(size_t bytes) {
  begin_ += bytes;
  position_.offset += static_cast<int64_t>(bytes);
}

void DocumentReader::skip_empty_lines() {
  do {
    skip(std::min(buffer_.find_first_not_of('\n', begin_), buffer_.size()) - begin_);
  } while (begin_ == buffer_.size() && fill());
}

// False where the file has no further document.
bool DocumentReader::read_document(Document& document) {
  document.file = position_.file;
  document.form = form_;
  document.begins = position_.inside == 0;
  const bool is_read = form_ == TextForm::json_array ? read_element(document) : read_text(document);
  document.begins_plain_json = is_read && std::exchange(is_plain_json_, false);
  position_.inside = is_read && !document.ends ? 1 : 0;
  return is_read;
}

bool DocumentReader::read_text(Document& document) {
  const bool is_plain = form_ == TextForm::plain;
  const std::string_view separator = separator_of(is_plain ? unit_ : DocumentUnit::line);
  if (document.begins && separator == separator_of(DocumentUnit::paragraph)) skip_empty_lines();
  document.offset = position_.offset;
  // What becomes of a document depends on its beginning alone, not on how much the buffer has.
  size_t window = is_plain && last_cut_ ? kWindow : std::string::npos;
  size_t searched = 0;  // Bytes behind begin_.
  while (true) {
    const std::string_view seen = std::string_view(buffer_).substr(begin_, window);
    const size_t end = separator.empty() ? std::string::npos : seen.find(separator, searched);
    if (end != std::string::npos) {
      take(end, separator.size(), document);
      return true;
    }
    searched = seen.size() - std::min(seen.size(), separator.size());
    if (seen.size() == window) {
      if (cut(window, separator, document)) return true;
      window *= 2;
      continue;
    }
    if (fill()) continue;
    if (buffer_.empty() && document.begins) return false;
    take(buffer_.size(), 0, document);
    return true;
  }
}

// Takes the first part of a document that fills the window. A separator must stay whole.
bool DocumentReader::cut(size_t window, std::string_view separator, Document& document) {
  const size_t room = window - (separator.empty() ? 0 : separator.size() - 1);
  const size_t place = last_cut_(std::string_view(buffer_).substr(begin_, room));
  if (place == 0) return false;
  take(place, 0, document);
  document.ends = false;
  return true;
}

// A copy: what the buffer has room for is far more than most documents take.
void DocumentReader::take(size_t bytes, size_t separator, Document& document) {
  document.text = buffer_.substr(begin_, bytes);
  skip(bytes + separator);
}

// The next character that is no space; 0 at the end of the file.
char DocumentReader::next_of_array() {
  do {
    skip(std::min(buffer_.find_first_not_of(" \t\r\n", begin_), buffer_.size()) - begin_);
  } while (begin_ == buffer_.size() && fill());
  return begin_ == buffer_.size() ? '\0' : buffer_[begin_];
}

bool DocumentReader::read_element(Document& document) {
  const bool is_first = position_.offset == 0;
  if (is_first) {
    next_of_array();
    skip(1);  // Its form says that this is the bracket.
  }
  char next = next_of_array();
  if (next == ']') {
    skip(1);
    if (next_of_array() != '\0') fail_array("has more behind the end of its array");
    return false;
  }
  if (!is_first) {
    if (next != ',' && next != '\0') fail_array("has no comma between two objects of its array");
    if (next == ',') skip(1);
    next = next_of_array();
  }
  document.offset = position_.offset;
  JsonValueScanner scanner;
  size_t length = 0;
  while (true) {
    size_t part = 0;
    const bool is_whole = scanner.scan(std::string_view(buffer_).substr(begin_ + length), part);
    length += part;
    if (is_whole) break;
    if (!fill()) fail_array("is cut off: its array does not end");
  }
  if (length == 0) fail_array("has nothing in the place of an object of its array");
  take(length, 0, document);
  return true;
}

void DocumentReader::fail_array(std::string_view problem) const {
  throw UserError(fmt::format("'{}' {}, at byte {}", files_[position_.file].string(), problem,
                              position_.offset));
}

}  // namespace phalanx
