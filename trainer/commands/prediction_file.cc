// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/prediction_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"

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

PredictionFile::PredictionFile(fs::path path)
    : path_(std::move(path)),
      part_(with_suffix(path_, ".part")),
      journal_(with_suffix(path_, ".part.json")) {}

int64_t PredictionFile::begin(const std::string& identity, int64_t batch_size, int64_t samples) {
  std::error_code error;
  const bool goes_on = fs::exists(journal_, error);
  if (goes_on) require_same(journal_, identity, part_);
  file_.emplace(part_, O_RDWR | O_CREAT | O_APPEND);
  if (!file_->try_lock()) {
    throw UserError(fmt::format("another command writes '{}'", part_.string()));
  }
  int64_t done = 0;
  int64_t bytes = 0;
  if (goes_on) {
    const WholeLines lines = whole_lines(part_, batch_size);
    const bool is_whole = lines.count == samples;
    done = is_whole ? samples : lines.count / batch_size * batch_size;
    bytes = is_whole ? lines.ends.back() : lines.ends[static_cast<size_t>(done / batch_size)];
  }
  if (ftruncate(file_->descriptor(), bytes) != 0) throw IoError("shorten", part_, errno);
  if (!goes_on) replace_file(journal_, identity);
  return done;
}

void PredictionFile::add(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line;
    text += '\n';
  }
  file_->append(text);
}

void PredictionFile::commit() {
  file_->sync();
  rename_path(part_, path_);
  remove_path(journal_);
  sync_folder(fs::absolute(path_).parent_path());
}

}  // namespace phalanx
