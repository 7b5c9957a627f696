// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/json_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/json_line.h"
#include "trainer/data/text/require_text.h"
#include "trainer/data/text/text_stream.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

std::string read_all(TextStream& stream) {
  std::string text;
  std::string part(size_t{1} << 18, '\0');
  while (const size_t count = stream.read(part)) text.append(part, 0, count);
  return text;
}

// Looks at a file's first bytes; the caller names the file.
void refuse_what_is_no_text(std::string_view begin) {
  if (const auto problem = no_text_problem(begin)) throw UserError("it " + *problem);
}

}  // namespace

// Finds the lines of one file after the other, and hashes them.
class JsonLines::Finder {
 public:
  explicit Finder(std::vector<Line>& lines) : lines_(lines) {}

  // Reads a stream to its end. Returns its bytes if they must be kept, since it is packed.
  std::string find(int32_t file, TextStream& stream) {
    std::string kept;
    std::string part(kReadAtOnce, '\0');
    line_ = {.offset = 0, .bytes = 0, .file = file};
    while (const size_t count = stream.read(std::span(part))) {
      const std::string_view read(part.data(), count);
      if (line_.offset == 0 && line_.bytes == 0) refuse_what_is_no_text(read);
      if (stream.is_packed()) kept += read;
      add(read);
    }
    end_line();
    return kept;
  }

  // The same of the objects of an array.
  void find_objects(int32_t file, const std::filesystem::path& path) {
    DocumentReader reader({path}, DocumentUnit::line, {});
    while (true) {
      const std::vector<Document> objects = reader.next(kReadAtOnce);
      if (objects.empty()) return;
      for (const Document& object : objects) {
        line_ = {.offset = object.offset, .bytes = 0, .file = file};
        add_to_line(object.text);
        end_line();
      }
    }
  }

  std::string fingerprint() const { return hash_.digits64(); }

 private:
  static constexpr size_t kReadAtOnce = size_t{1} << 18;

  void add(std::string_view read) {
    while (!read.empty()) {
      const size_t end = read.find('\n');
      add_to_line(read.substr(0, end));
      if (end == std::string_view::npos) return;
      end_line();
      read.remove_prefix(end + 1);
    }
  }

  void add_to_line(std::string_view part) {
    if (part.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() - line_.bytes)) {
      throw UserError(fmt::format("the line at byte {} has more than 2^31 bytes", line_.offset));
    }
    line_.bytes += static_cast<int32_t>(part.size());
    has_text_ = has_text_ || part.find_first_not_of(" \t\r") != std::string_view::npos;
    hash_.add(part);
  }

  void end_line() {
    if (std::exchange(has_text_, false)) {
      lines_.push_back(line_);
      hash_.add("\n");
    }
    line_ = {.offset = line_.offset + line_.bytes + 1, .bytes = 0, .file = line_.file};
  }

  std::vector<Line>& lines_;
  Xxh3 hash_;
  Line line_{};            // The one that is being read,
  bool has_text_ = false;  // and whether it is one.
};

JsonLines::JsonLines(const std::string& field, const FileList& files)
    : files_(std::make_shared<const DataFiles>(field, files)), is_array_(files.size()) {
  Finder finder(lines_);
  for (int32_t file = 0; file < static_cast<int32_t>(files.size()); ++file) {
    const std::string name = files_->path(static_cast<size_t>(file)).string();
    const auto first = size();
    try {
      find_lines(file, finder);
      if (size() == first) throw UserError("it has no lines");
      object(first);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{}: '{}': {}", field, name, e.what()));
    } catch (const BrokenSampleError& e) {
      if (has_table_name(name)) {
        throw UserError(fmt::format("{}: '{}' is a table: a pair is a line of JSONL; {}", field,
                                    name, kTableAsJsonLines));
      }
      throw UserError(fmt::format("{}: {}", field, e.what()));
    } catch (const IoError& e) {
      throw UserError(fmt::format("{}: {}", field, e.what()));
    } catch (const std::system_error& e) {
      throw UserError(fmt::format("{}: cannot read '{}': {}", field, name, e.code().message()));
    }
  }
  fingerprint_ = finder.fingerprint();
}

void JsonLines::find_lines(int32_t file, Finder& finder) {
  const std::filesystem::path path = files_->path(static_cast<size_t>(file));
  const bool is_array = form_of(path) == TextForm::json_array;
  is_array_[static_cast<size_t>(file)] = is_array;
  const auto stream = open_text(path);
  if (is_array) {
    finder.find_objects(file, path);
    if (stream->is_packed()) unpacked_.emplace(file, read_all(*stream));
    return;
  }
  std::string unpacked = finder.find(file, *stream);
  if (stream->is_packed()) unpacked_.emplace(file, std::move(unpacked));
}

nlohmann::json JsonLines::object(int64_t index) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  try {
    return read_json_line(text(line.file, line.offset, line.bytes)).object;
  } catch (const UserError& e) {
    const char* const what = is_array_[static_cast<size_t>(line.file)] ? "element" : "line";
    throw BrokenSampleError(
        {.source = file_of(index),
         .kind = "a line that is no JSON object",
         .message = fmt::format("{}: the {} {}", place_of(index), what, e.what())});
  }
}

std::string JsonLines::file_of(int64_t index) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  return files_->path(static_cast<size_t>(line.file)).string();
}

// The lines before are counted anew: nobody counts while all is well.
std::string JsonLines::place_of(int64_t index) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  const std::string before = text(line.file, 0, line.offset);
  return fmt::format("'{}', line {}", file_of(index),
                     1 + std::count(before.begin(), before.end(), '\n'));
}

std::string JsonLines::text(int32_t file, int64_t offset, int64_t bytes) const {
  const auto begin = static_cast<size_t>(offset);
  const auto size = static_cast<size_t>(bytes);
  const auto unpacked = unpacked_.find(file);
  if (unpacked != unpacked_.end()) return unpacked->second.substr(begin, size);
  std::string text(size, '\0');
  files_->read(static_cast<size_t>(file), begin,
               {reinterpret_cast<unsigned char*>(text.data()), size});
  return text;
}

}  // namespace phalanx
