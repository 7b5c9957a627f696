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
#include "trainer/data/text/json_line.h"
#include "trainer/data/text/text_stream.h"
#include "trainer/io/file.h"

namespace phalanx {

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
      if (stream.is_packed()) kept += read;
      add(read);
    }
    end_line();
    return kept;
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

JsonLines::JsonLines(const std::string& field, const std::vector<std::filesystem::path>& files) {
  Finder finder(lines_);
  for (const std::filesystem::path& path : files) {
    const auto first = size();
    File& file = files_.emplace_back();
    file.path = path;
    try {
      const auto stream = open_text(path);
      file.unpacked = finder.find(static_cast<int32_t>(files_.size()) - 1, *stream);
      if (!stream->is_packed()) file.mapped.emplace(path);
      if (size() == first) throw UserError("it has no lines");
      object(first);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{}: '{}': {}", field, path.string(), e.what()));
    } catch (const BrokenSampleError& e) {
      throw UserError(fmt::format("{}: {}", field, e.what()));
    } catch (const IoError& e) {
      throw UserError(fmt::format("{}: {}", field, e.what()));
    } catch (const std::system_error& e) {
      throw UserError(
          fmt::format("{}: cannot read '{}': {}", field, path.string(), e.code().message()));
    }
  }
  fingerprint_ = finder.fingerprint();
}

nlohmann::json JsonLines::object(int64_t index) const {
  const Line& line = lines_.at(static_cast<size_t>(index));
  try {
    return read_json_line(text(file(index), line.offset, line.bytes)).object;
  } catch (const UserError& e) {
    throw BrokenSampleError({.source = file_of(index),
                             .kind = "a line that is no JSON object",
                             .message = fmt::format("{}: the line {}", place_of(index), e.what())});
  }
}

std::string JsonLines::file_of(int64_t index) const { return file(index).path.string(); }

// The lines before are counted anew: nobody counts while all is well.
std::string JsonLines::place_of(int64_t index) const {
  const std::string before = text(file(index), 0, lines_.at(static_cast<size_t>(index)).offset);
  return fmt::format("'{}', line {}", file_of(index),
                     1 + std::count(before.begin(), before.end(), '\n'));
}

const JsonLines::File& JsonLines::file(int64_t index) const {
  return files_.at(static_cast<size_t>(lines_.at(static_cast<size_t>(index)).file));
}

std::string JsonLines::text(const File& file, int64_t offset, int64_t bytes) const {
  const auto begin = static_cast<size_t>(offset);
  const auto size = static_cast<size_t>(bytes);
  if (!file.mapped) return file.unpacked.substr(begin, size);
  std::string text(size, '\0');
  file.mapped->read(begin, {reinterpret_cast<unsigned char*>(text.data()), size});
  return text;
}

}  // namespace phalanx
