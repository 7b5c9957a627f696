// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/last_end.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "trainer/base/bounded_text.h"
#include "trainer/base/exit_codes.h"
#include "trainer/base/stop_signal.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/run/run_folder.h"

namespace phalanx {
namespace {

using Line = BoundedText<4096>;
using Name = std::array<char, 64>;

// What a handler needs. Texts end with a zero.
struct Prepared {
  std::array<char, PATH_MAX> ends_file{};
  std::array<char, PATH_MAX> latest_file{};
  Name checkpoint{};
  int64_t start = 0;
  const RunProgress* progress = nullptr;
};
Prepared prepared;
std::atomic<bool> is_prepared = false;

template <size_t size>
bool keep(const std::string& text, std::array<char, size>& memory) {
  if (text.size() >= size) return false;
  memory.fill('\0');
  std::ranges::copy(text, memory.begin());
  return true;
}

void add_quoted(Line& line, std::string_view text) {
  line << "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view character = text.substr(i, 1);
    if (character == "\"" || character == "\\") line << "\\";
    line << (static_cast<unsigned char>(text[i]) < ' ' ? " " : character);
  }
  line << "\"";
}

void add_padded(Line& line, int64_t number) { line << (number < 10 ? "0" : "") << number; }

// As utc_now(), which needs the heap.
void add_time(Line& line) {
  using namespace std::chrono;
  const auto now = time_point_cast<seconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  line << static_cast<int>(date.year()) << "-";
  add_padded(line, static_cast<unsigned>(date.month()));
  line << "-";
  add_padded(line, static_cast<unsigned>(date.day()));
  line << "T";
  add_padded(line, time.hours().count());
  line << ":";
  add_padded(line, time.minutes().count());
  line << ":";
  add_padded(line, time.seconds().count());
  line << "Z";
}

// By the kernel's own calls, here and below: a preloaded library that stands in for those of libc
// may have been interrupted with a lock in its hands.
int open_file(const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, 0666));
}

// The first line of a file; empty without it.
std::string_view first_line(const char* path, Name& memory) {
  const int file = open_file(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::syscall(SYS_read, file, memory.data(), memory.size());
  ::syscall(SYS_close, file);
  const std::string_view text(memory.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text.substr(0, text.find('\n'));
}

bool ends_in_a_torn_line(int file) {
  const off_t size = ::syscall(SYS_lseek, file, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::syscall(SYS_pread64, file, &last, 1UL, size - 1) == 1 && last != '\n';
}

void append(const Line& line) {
  const int file = open_file(prepared.ends_file.data(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  if (ends_in_a_torn_line(file) && ::syscall(SYS_write, file, "\n", 1UL) != 1) return;
  std::string_view rest = line.view();
  while (!rest.empty()) {
    const ssize_t written = ::syscall(SYS_write, file, rest.data(), rest.size());
    if (written <= 0) break;
    rest.remove_prefix(static_cast<size_t>(written));
  }
  ::syscall(SYS_fsync, file);
  ::syscall(SYS_close, file);
}

void record_second_interrupt() { LastEnd::record(SIGINT, "a second SIGINT ended the run at once"); }

}  // namespace

LastEnd::LastEnd(const BegunStart& start, const RunProgress& progress) {
  const std::filesystem::path folder = start.exp_dir;
  prepared.start = start.number;
  prepared.progress = &progress;
  is_prepared = keep((folder / kEndsFile).string(), prepared.ends_file) &&
                keep((folder / kCheckpointsFolder / kLatestFile).string(), prepared.latest_file) &&
                keep(start.checkpoint, prepared.checkpoint);
  StopSignal::before_end_at_once(record_second_interrupt);
}

LastEnd::~LastEnd() {
  StopSignal::before_end_at_once(nullptr);
  is_prepared = false;
}

void LastEnd::record(int signal, std::string_view error) {
  if (!is_prepared.exchange(false)) return;
  Name memory{};
  const std::string_view checkpoint = first_line(prepared.latest_file.data(), memory);
  Line line;
  line << R"({"time":")";
  add_time(line);
  line << R"(","start":)" << prepared.start << R"(,"exit_code":)" << kSignalBase + signal
       << R"(,"signal":)" << signal
       << (prepared.progress->has_restored() ? "" : R"(,"began":false)") << R"(,"step":)"
       << prepared.progress->step() << R"(,"error":)";
  // So that what follows fits whatever it is.
  add_quoted(line, error.substr(0, 1024));
  const bool has_saved = !checkpoint.empty() && checkpoint != prepared.checkpoint.data();
  line << R"(,"saved":)" << (has_saved ? "true" : "false");
  if (!checkpoint.empty()) {
    line << R"(,"checkpoint":)";
    add_quoted(line, checkpoint);
  }
  line << "}\n";
  append(line);
}

}  // namespace phalanx
