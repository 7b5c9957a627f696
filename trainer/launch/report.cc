// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/report.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "trainer/base/utf8.h"

namespace phalanx {
namespace {

constexpr size_t kLongestMessage = 1 << 16;

constexpr int64_t kNoRank = -1;

// Both ends are the same program, so its bytes travel as they are.
struct Header {
  int64_t nanoseconds = 0;
  int32_t exit_code = 0;
  uint32_t caused_by_peer = 0;
  int64_t signal = 0;
  int64_t rank = kNoRank;
  uint64_t message_size = 0;
};

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

int64_t nanoseconds_of(LaunchClock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void send(int pipe, Header header, std::string_view message) {
  header.message_size = message.size();
  std::array<char, sizeof(header)> bytes;  // NOLINT(*-member-init): filled right away
  std::memcpy(bytes.data(), &header, sizeof(header));
  write_all(pipe, {bytes.data(), bytes.size()});
  write_all(pipe, message);
}

}  // namespace

void send_report(const Descriptor& pipe, const RankReport& report) {
  const RankOutcome& outcome = report.outcome;
  send(pipe.number(),
       {.nanoseconds = nanoseconds_of(report.time),
        .exit_code = outcome.exit_code,
        .caused_by_peer = outcome.caused_by_peer,
        .signal = outcome.signal,
        .rank = outcome.rank.value_or(kNoRank)},
       first_bytes(outcome.message, kLongestMessage));
}

void send_report_of_signal(int pipe, int signal, std::string_view message) noexcept {
  send(pipe,
       {.nanoseconds = nanoseconds_of(LaunchClock::now()), .exit_code = kFailure, .signal = signal},
       message.substr(0, kLongestMessage));
}

void ReportReader::read() {
  while (is_open()) {
    const ReadResult result = read_some(pipe_, bytes_);
    if (result == ReadResult::nothing_yet) return;
    const bool too_long = bytes_.size() > sizeof(Header) + kLongestMessage;
    if (result == ReadResult::end || too_long) close();
  }
}

std::optional<RankReport> ReportReader::report() const {
  Header header;
  if (bytes_.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (bytes_.size() - sizeof(header) != header.message_size) return std::nullopt;
  RankReport report;
  report.outcome.exit_code = header.exit_code;
  report.outcome.caused_by_peer = header.caused_by_peer != 0;
  report.outcome.signal = static_cast<int>(header.signal);
  if (header.rank != kNoRank) report.outcome.rank = header.rank;
  report.outcome.message = bytes_.substr(sizeof(header));
  const std::chrono::nanoseconds since_start(header.nanoseconds);
  report.time =
      LaunchClock::time_point(std::chrono::duration_cast<LaunchClock::duration>(since_start));
  return report;
}

}  // namespace phalanx
