// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/token_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

// A Megatron index begins with magic, version, type, and the numbers of sequences and documents.
constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
constexpr uint64_t kMegatronVersion = 1;
constexpr uint8_t kMegatronUint16 = 8;
constexpr uint8_t kMegatronInt32 = 4;

template <class Number>
std::span<const std::byte> bytes_of_all(const std::vector<Number>& numbers) {
  return std::as_bytes(std::span(numbers));
}

template <class Number>
void append_number(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Stored>
void append_tokens(std::vector<std::byte>& buffer, std::span<const int32_t> tokens) {
  const size_t begin = buffer.size();
  buffer.resize(begin + tokens.size() * sizeof(Stored));
  std::byte* to = buffer.data() + begin;
  for (const int32_t token : tokens) {
    const auto stored = static_cast<Stored>(token);
    std::memcpy(to, &stored, sizeof stored);
    to += sizeof stored;
  }
}

void cut_off(const File& file, int64_t size) {
  if (ftruncate(file.descriptor(), size) != 0) throw IoError("cut off", file.path(), errno);
}

}  // namespace

TokenWriter::TokenWriter(std::filesystem::path folder, std::string name, const Layout& layout,
                         State state)
    : folder_(std::move(folder)), name_(std::move(name)), layout_(layout), state_(state) {
  require_whole_files();
  if (state_.tokens == 0) return;
  const int64_t header = layout_.format == TokenFileFormat::llmc ? kLlmcHeaderBytes : 0;
  require_size(path(".bin"), header, state_.tokens, bytes_of(layout_.type));
  if (layout_.format == TokenFileFormat::megatron) {
    require_size(path(".lengths"), 0, state_.documents, sizeof(int32_t));
  }
  open();
}

void TokenWriter::fail(const std::filesystem::path& file, std::string_view problem) const {
  throw UserError(
      fmt::format("'{}' {}: remove '{}' and begin anew", file.string(), problem, folder_.string()));
}

void TokenWriter::require_whole_files() {
  const int64_t files = std::exchange(state_.files, 0);
  for (; state_.files < files; ++state_.files) {
    const std::filesystem::path file = path(".bin");
    if (!std::filesystem::exists(file)) fail(file, "is missing");
  }
}

// Written as a division: what a broken state says may be any number.
void TokenWriter::require_size(const std::filesystem::path& file, int64_t header, int64_t count,
                               int64_t each) const {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file, error));
  if (error) fail(file, "is missing");
  if (count > (size - header) / each) fail(file, "is shorter than it was");
}

std::filesystem::path TokenWriter::path(std::string_view extension) const {
  return folder_ / fmt::format("{}_{:06}{}", name_, state_.files, extension);
}

// Opens the file that state_ is in, for what comes behind its tokens.
void TokenWriter::open() {
  const int64_t header = layout_.format == TokenFileFormat::llmc ? kLlmcHeaderBytes : 0;
  file_.emplace(path(".bin"), O_RDWR | O_CREAT);
  cut_off(*file_, header + state_.tokens * bytes_of(layout_.type));
  lseek(file_->descriptor(), 0, SEEK_END);
  if (layout_.format != TokenFileFormat::megatron) return;
  lengths_file_.emplace(path(".lengths"), O_RDWR | O_CREAT);
  cut_off(*lengths_file_, state_.documents * static_cast<int64_t>(sizeof(int32_t)));
  lseek(lengths_file_->descriptor(), 0, SEEK_END);
}

void TokenWriter::begin_document() {
  const std::optional<int32_t>& end = layout_.end_of_text;
  if (end && layout_.format == TokenFileFormat::llmc) append({&*end, 1});
}

void TokenWriter::append(std::span<const int32_t> part) {
  while (!part.empty()) {
    if (!file_) open();
    const bool may_cut = layout_.format != TokenFileFormat::megatron;
    const auto room = static_cast<size_t>(layout_.file_tokens - state_.tokens);
    const auto now = may_cut ? part.first(std::min(part.size(), room)) : part;
    if (layout_.type == TokenType::uint16) {
      append_tokens<uint16_t>(buffer_, now);
    } else {
      append_tokens<uint32_t>(buffer_, now);
    }
    state_.tokens += static_cast<int64_t>(now.size());
    if (buffer_.size() >= kBufferBytes) flush();
    if (may_cut && state_.tokens == layout_.file_tokens) close();
    part = part.subspan(now.size());
  }
}

void TokenWriter::end_document(int64_t tokens) {
  const std::optional<int32_t>& end = layout_.end_of_text;
  if (end && layout_.format != TokenFileFormat::llmc) append({&*end, 1});
  if (layout_.format != TokenFileFormat::megatron) return;
  const int64_t length = tokens + (end ? 1 : 0);
  if (length > std::numeric_limits<int32_t>::max()) {
    throw UserError(
        fmt::format("a document has {} tokens, and Megatron's index counts those of one in 32 "
                    "bits: cut the text into documents (--document)",
                    length));
  }
  lengths_.push_back(static_cast<int32_t>(length));
  ++state_.documents;
  if (state_.tokens >= layout_.file_tokens) close();
}

void TokenWriter::flush() {
  if (!file_) return;
  file_->write(buffer_);
  buffer_.clear();
  if (lengths_file_) lengths_file_->write(bytes_of_all(lengths_));
  lengths_.clear();
}

void TokenWriter::sync() {
  flush();
  if (file_) file_->sync();
  if (lengths_file_) lengths_file_->sync();
  sync_folder(folder_);
}

void TokenWriter::finish() {
  if (file_) close();
}

void TokenWriter::close() {
  flush();
  if (layout_.format == TokenFileFormat::llmc) write_header();
  if (layout_.format == TokenFileFormat::megatron) write_index();
  file_->sync();
  file_.reset();
  lengths_file_.reset();
  state_ = {.files = state_.files + 1, .tokens = 0, .documents = 0};
}

// dev/data/data_common.py of llm.c.
void TokenWriter::write_header() {
  const bool is_small = layout_.type == TokenType::uint16;
  std::array<int32_t, kLlmcHeaderBytes / sizeof(int32_t)> header{};
  header[0] = is_small ? 20240520 : 20240801;
  header[1] = is_small ? 1 : 7;
  header[2] = static_cast<int32_t>(state_.tokens);
  file_->write_at(std::as_bytes(std::span(header)), 0);
}

// megatron/core/datasets/indexed_dataset.py: each document is one sequence.
void TokenWriter::write_index() {
  std::vector<int32_t> lengths(static_cast<size_t>(state_.documents));
  lengths_file_->read(std::as_writable_bytes(std::span(lengths)), 0);
  std::string text(kMegatronMagic);
  append_number(text, kMegatronVersion);
  append_number(text, layout_.type == TokenType::uint16 ? kMegatronUint16 : kMegatronInt32);
  append_number(text, static_cast<uint64_t>(lengths.size()));
  append_number(text, static_cast<uint64_t>(lengths.size() + 1));
  for (const int32_t length : lengths) append_number(text, length);
  int64_t pointer = 0;
  for (const int32_t length : lengths) {
    append_number(text, pointer);
    pointer += length * bytes_of(layout_.type);
  }
  for (uint64_t i = 0; i <= lengths.size(); ++i) append_number(text, i);
  File index(path(".idx"), O_WRONLY | O_CREAT | O_TRUNC);
  index.write(text);
  index.sync();
  // The lengths stay: after a kill here the index is written once more.
}

}  // namespace phalanx
