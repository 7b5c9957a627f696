// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/resumable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/io/file_lock.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(const fs::path& path, const char* suffix) { return path.string() + suffix; }

// Where whole lines end: after a power cut what follows may be half a line, or none of ours.
struct WholeLines {
  int64_t count = 0;
  std::vector<int64_t> ends;  // Bytes up to the end of every `batch_size`th line, and of the last.
};

WholeLines whole_lines(const fs::path& path, int64_t batch_size) {
  WholeLines lines{.count = 0, .ends = {0}};
  std::ifstream in(path, std::ios::binary);
  int64_t offset = 0;
  int64_t last_end = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    if (!nlohmann::json::accept(line)) break;
    offset += static_cast<int64_t>(line.size()) + 1;
    last_end = offset;
    if (++lines.count % batch_size == 0) lines.ends.push_back(offset);
  }
  if (lines.count % batch_size != 0) lines.ends.push_back(last_end);
  return lines;
}

void require_same(const fs::path& journal, const std::string& identity, const fs::path& part) {
  if (read_text(journal) == identity) return;
  throw UserError(
      fmt::format("'{}' is of another model, config or input ('{}' says of what): remove both, or "
                  "name another --output",
                  part.string(), journal.string()));
}

}  // namespace

ResumableFile::ResumableFile(fs::path path)
    : path_(std::move(path)),
      part_(with_suffix(path_, ".part")),
      journal_(with_suffix(path_, ".part.json")) {}

int64_t ResumableFile::begin(const std::string& identity, int64_t batch_size, int64_t lines,
                             const std::function<void(const std::string& line)>& see) {
  std::error_code error;
  const bool goes_on = fs::exists(journal_, error);
  if (goes_on) require_same(journal_, identity, part_);
  file_.emplace(part_, O_RDWR | O_CREAT | O_APPEND);
  if (!try_lock_or_warn(*file_, "nothing keeps a second command from writing it, too")) {
    throw UserError(fmt::format("another command writes '{}'", part_.string()));
  }
  lines_ = lines;
  int64_t bytes = 0;
  if (goes_on) {
    const WholeLines whole = whole_lines(part_, batch_size);
    const bool has_all = whole.count == lines;
    written_ = has_all ? lines : whole.count / batch_size * batch_size;
    bytes = has_all ? whole.ends.back() : whole.ends[static_cast<size_t>(written_ / batch_size)];
  }
  if (ftruncate(file_->descriptor(), bytes) != 0) throw IoError("shorten", part_, errno);
  if (!goes_on) replace_file(journal_, identity);
  std::ifstream kept(part_, std::ios::binary);
  for (std::string line; std::getline(kept, line);) see(line);
  return written_;
}

void ResumableFile::add(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line;
    text += '\n';
  }
  file_->append(text);
  written_ += std::ssize(lines);
}

void ResumableFile::finish() {
  if (written_ < lines_) {
    fmt::print(stderr, "{} of {} lines are in '{}'; the same command goes on from there\n",
               written_, lines_, part_.string());
    return;
  }
  file_->sync();
  rename_path(part_, path_);
  remove_path(journal_);
  sync_folder(fs::absolute(path_).parent_path());
}

}  // namespace phalanx
