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

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string read_whole(const fs::path& path) {
  if (!is_file(path)) {
    throw UserError(fmt::format("there is no file '{}'", path.string()));
  }
  const std::unique_ptr<TextStream> stream = open_text(path);
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const size_t read = stream->read(buffer)) text.append(buffer.data(), read);
  if (text.empty()) throw UserError(fmt::format("'{}' is empty", path.string()));
  return text;
}

// A header and rows, or the lines of one object, would each get a prediction.
void require_lines(const fs::path& path) {
  if (has_table_name(path)) {
    throw UserError(fmt::format(
        "'{}' is a table: an input is a line of text or of JSONL; {}, or name it .txt if each line "
        "is an input",
        path.string(), kTableAsJsonLines));
  }
  if (has_json_name(path)) {
    throw UserError(
        fmt::format("'{}' is no JSON array of objects: name it .jsonl if each line is an object, "
                    ".txt if each line is a text",
                    path.string()));
  }
}

}  // namespace

InputLines::InputLines(const std::vector<fs::path>& files, const AnyBytes& any_bytes) {
  for (const fs::path& path : files) {
    const bool is_array =
        has_json_name(path) && is_file(path) && form_of(path) == TextForm::json_array;
    files_.push_back({.path = path,
                      .is_json = is_array || is_json_lines(path),
                      .is_array = is_array,
                      .text = {}});
    if (is_array) {
      add_objects(files_.size() - 1);
    } else {
      files_.back().text = read_whole(path);
      require_text(path, files_.back().text, any_bytes);
      require_lines(path);
      add_lines(files_.size() - 1);
    }
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

// Objects of an array, one behind the other; each counts as a line.
void InputLines::add_objects(size_t file) {
  std::string& text = files_[file].text;
  DocumentReader reader({files_[file].path}, DocumentUnit::line, {});
  int64_t number = 0;
  while (true) {
    const std::vector<Document> objects = reader.next(1 << 20);
    if (objects.empty()) break;
    for (const Document& object : objects) {
      lines_.push_back(
          {.file = file, .offset = text.size(), .bytes = object.text.size(), .number = ++number});
      text += object.text;
    }
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
    const bool is_of_array = files_[lines_.at(static_cast<size_t>(index)).file].is_array;
    fail(index, "a line that is no JSON object",
         fmt::format("the {} {}", is_of_array ? "element" : "line", e.what()));
  }
}

void InputLines::fail(int64_t index, const std::string& kind, const std::string& problem) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  const File& file = files_[line.file];
  throw BrokenSampleError(
      {.source = file.path.string(),
       .kind = kind,
       .message = fmt::format("'{}', {} {}: {}", file.path.string(),
                              file.is_array ? "object" : "line", line.number, problem)});
}

std::string InputLines::fingerprint() const {
  XXH64_hash_t hash = 0;
  for (const File& file : files_) {
    hash = XXH3_64bits_withSeed(file.text.data(), file.text.size(), hash);
  }
  return fmt::format("lines-{}-{:016x}", size(), hash);
}

}  // namespace phalanx
