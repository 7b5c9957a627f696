// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/input_lines.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/json_line.h"
#include "trainer/data/text/text_stream.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::string read_whole(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    throw UserError(fmt::format("there is no file '{}'", path.string()));
  }
  const std::unique_ptr<TextStream> stream = open_text(path);
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const size_t read = stream->read(buffer)) text.append(buffer.data(), read);
  if (text.empty()) throw UserError(fmt::format("'{}' is empty", path.string()));
  return text;
}

}  // namespace

InputLines::InputLines(const std::vector<fs::path>& files) {
  for (const fs::path& path : files) {
    files_.push_back({.path = path, .is_json = is_json_lines(path), .text = read_whole(path)});
    add_lines(files_.size() - 1);
  }
}

void InputLines::add_lines(size_t file) {
  const std::string& text = files_[file].text;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool has_return = end > begin && text[end - 1] == '\r';
    lines_.push_back({.file = file,
                      .offset = begin,
                      .bytes = end - begin - (has_return ? 1 : 0),
                      .number = ++number});
    begin = end + 1;
  }
}

bool InputLines::is_json(int64_t index) const {
  return files_[lines_.at(static_cast<size_t>(index)).file].is_json;
}

std::string InputLines::text(int64_t index) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  std::string text = files_[line.file].text.substr(line.offset, line.bytes);
  if (text.find_first_not_of(" \t") == std::string::npos) {
    fail(index, "an empty line", "the line is empty");
  }
  return text;
}

nlohmann::json InputLines::object(int64_t index) const {
  try {
    return read_json_line(text(index)).object;
  } catch (const UserError& e) {
    fail(index, "a line that is no JSON object", fmt::format("the line {}", e.what()));
  }
}

void InputLines::fail(int64_t index, const std::string& kind, const std::string& problem) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  const std::string file = files_[line.file].path.string();
  throw BrokenSampleError(
      {.source = file,
       .kind = kind,
       .message = fmt::format("'{}', line {}: {}", file, line.number, problem)});
}

std::string InputLines::fingerprint() const {
  XXH64_hash_t hash = 0;
  for (const File& file : files_) {
    hash = XXH3_64bits_withSeed(file.text.data(), file.text.size(), hash);
  }
  return fmt::format("lines-{}-{:016x}", size(), hash);
}

}  // namespace phalanx
