// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace phalanx {
namespace {

const RankReport kReport{{2, "line 1\nline 2", true, 3, 6},
                         LaunchClock::time_point(std::chrono::nanoseconds(123456789))};

std::string bytes_of(const RankReport& report) {
  const Pipe pipe = make_pipe();
  send_report(pipe.write_end, report);
  std::string bytes;
  read_some(pipe.read_end, bytes);
  return bytes;
}

void put(const Descriptor& pipe, std::string_view bytes) {
  ASSERT_EQ(::write(pipe.number(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

TEST(Report, ArrivesInWhateverPieces) {
  const std::string bytes = bytes_of(kReport);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    Pipe pipe = make_pipe();
    ReportReader reader(std::move(pipe.read_end));
    put(pipe.write_end, bytes.substr(0, cut));
    reader.read();
    ASSERT_FALSE(reader.report()) << cut;
    put(pipe.write_end, bytes.substr(cut));
    reader.read();
    EXPECT_TRUE(reader.is_open());
    pipe.write_end.close();
    reader.read();
    EXPECT_FALSE(reader.is_open());
    const auto report = reader.report();
    ASSERT_TRUE(report) << cut;
    EXPECT_EQ(report->outcome, kReport.outcome);
    EXPECT_EQ(report->time, kReport.time);
  }
}

TEST(Report, OfARankKilledWhileItWroteIsNone) {
  Pipe pipe = make_pipe();
  ReportReader reader(std::move(pipe.read_end));
  const std::string bytes = bytes_of(kReport);
  put(pipe.write_end, bytes.substr(0, bytes.size() - 1));
  pipe.write_end.close();
  reader.read();
  EXPECT_FALSE(reader.is_open());
  EXPECT_FALSE(reader.report());
}

TEST(Report, OfASignalIsThatOfAFailure) {
  Pipe pipe = make_pipe();
  const auto before = LaunchClock::now();
  send_report_of_signal(pipe.write_end.number(), 11, "step 3");
  ReportReader reader(std::move(pipe.read_end));
  reader.read();
  const auto report = reader.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome, (RankOutcome{.exit_code = 1, .message = "step 3", .signal = 11}));
  EXPECT_GE(report->time, before);
}

TEST(Report, IsBoundedInSize) {
  const std::string message(1 << 16, 'x');
  Pipe pipe = make_pipe();
  ::fcntl(pipe.write_end.number(), F_SETPIPE_SZ, 1 << 18);
  send_report(pipe.write_end, {{1, message + message}, {}});
  ReportReader reader(std::move(pipe.read_end));
  reader.read();
  ASSERT_TRUE(reader.report());
  EXPECT_EQ(reader.report()->outcome.message, message);
  put(pipe.write_end, message);
  reader.read();
  EXPECT_FALSE(reader.is_open());
  EXPECT_FALSE(reader.report());
}

}  // namespace
}  // namespace phalanx
