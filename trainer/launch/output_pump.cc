// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/output_pump.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace phalanx {
namespace {

// A longer line is broken: the launcher's memory must not be what a rank prints.
constexpr size_t kLongestLine = 1 << 16;

constexpr size_t kLongestKeptLine = 500;

}  // namespace

void Outlet::add(std::string_view text) {
  if (waiting_.empty() && is_torn_) waiting_ += '\n';  // its other half was dropped
  waiting_ += text;
}

void Outlet::write() {
  while (!waiting_.empty() && accepts()) {
    const std::string_view piece = next_piece();
    const ssize_t written = ::write(descriptor_, piece.data(), piece.size());
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (written < 0) return drop(errno);
    if (written > 0) is_torn_ = piece[static_cast<size_t>(written) - 1] != '\n';
    waiting_.erase(0, static_cast<size_t>(written));
  }
}

void Outlet::drop(int error) {
  if (!nobody_reads(error)) {
    const std::string_view lines =
        std::string_view(waiting_).substr(waiting_.starts_with('\n') && is_torn_ ? 1 : 0);
    lost_.records += std::count(lines.begin(), lines.end(), '\n');
    lost_.why = std::generic_category().message(error);
  }
  waiting_.clear();
}

Missing Outlet::take_lost() { return std::exchange(lost_, {}); }

bool Outlet::accepts() const {
  pollfd waiting{descriptor_, POLLOUT, 0};
  return ::poll(&waiting, 1, 0) > 0;  // also where writing is an error
}

// A pipe that accepts anything takes this much without waiting, and takes it in one piece: rank 0
// writes into the same pipe, and whole lines of both are wanted.
std::string_view Outlet::next_piece() const {
  const std::string_view piece = std::string_view(waiting_).substr(0, PIPE_BUF);
  const size_t last_end = piece.rfind('\n');
  return last_end == std::string_view::npos ? piece : piece.substr(0, last_end + 1);
}

LinePump::LinePump(Descriptor source, LineRoute route, Outlet& outlet)
    : source_(std::move(source)), route_(std::move(route)), outlet_(&outlet) {}

void LinePump::pump(bool rank_has_ended) {
  if (!is_open()) return;
  std::string text;
  const ReadResult result = read_some(source_, text);
  pass_on(text);
  // A process that a rank has left behind may hold the stream open for ever.
  const bool nothing_comes = result == ReadResult::nothing_yet && rank_has_ended;
  if (result != ReadResult::end && !nothing_comes) return;
  source_.close();
  if (!line_.empty()) end_line();
}

void LinePump::pass_on(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t size = std::min({end, text.size(), kLongestLine - line_.size()});
    line_ += text.substr(0, size);
    text.remove_prefix(size);
    const bool whole = text.starts_with('\n');
    if (whole) text.remove_prefix(1);
    if (whole || line_.size() == kLongestLine) end_line();
  }
}

void LinePump::end_line() {
  keep_line();
  line_ += '\n';
  if (route_.is_shown) outlet_->add(route_.prefix + line_);
  if (route_.file.is_open()) write_log();
  line_.clear();
}

// A log on a full disk ends no run.
void LinePump::write_log() {
  std::string_view rest = line_;
  while (!rest.empty()) {
    const ssize_t written = ::write(route_.file.number(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      outlet_->add(route_.prefix +
                   "warning: its log ends here: " + std::generic_category().message(errno) + "\n");
      return route_.file.close();
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void LinePump::keep_line() {
  if (last_lines_.size() == kKeptLines) last_lines_.pop_front();
  last_lines_.push_back(line_.substr(0, kLongestKeptLine));
}

}  // namespace phalanx
