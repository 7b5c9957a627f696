// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/progress_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace phalanx {
namespace {

using testing::Optional;

TEST(FormatNumber, HasFourSignificantDigits) {
  EXPECT_EQ(format_number(2.3), "2.300");
  EXPECT_EQ(format_number(10.8249), "10.82");
  EXPECT_EQ(format_number(999.94), "999.9");
  EXPECT_EQ(format_number(999.96), "1000");
  EXPECT_EQ(format_number(-1234.4), "-1234");
  EXPECT_EQ(format_number(9999.6), "1.000e+04");
  EXPECT_EQ(format_number(0.00001), "1.000e-05");
  EXPECT_EQ(format_number(-0.5), "-0.5000");
  EXPECT_EQ(format_number(0), "0.000");
  EXPECT_EQ(format_number(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(format_number(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(format_number(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(FormatRate, HasAUnitPrefix) {
  EXPECT_EQ(format_rate(950), "950.0");
  EXPECT_EQ(format_rate(12345.6), "12.35k");
  EXPECT_EQ(format_rate(999.99), "1.000k");
  EXPECT_EQ(format_rate(1.2e6), "1.200M");
  EXPECT_EQ(format_rate(3e17), "3.000e+05T");
  EXPECT_EQ(format_rate(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(FormatDuration, UsesTwoUnits) {
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(59.4), "59s");
  EXPECT_EQ(format_duration(59.6), "1m00s");
  EXPECT_EQ(format_duration(125), "2m05s");
  EXPECT_EQ(format_duration(3725), "1h02m");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600), "2d03h");
  EXPECT_EQ(format_duration(-1), "0s");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
}

State at(int64_t step, double elapsed) {
  State state;
  state.step = step;
  state.elapsed = elapsed;
  return state;
}

TEST(RemainingTime, FollowsThePaceSoFar) {
  RemainingTime remaining(100, {});
  EXPECT_THAT(remaining.after(at(20, 10)), Optional(40.0));
  EXPECT_THAT(remaining.after(at(99, 99)), Optional(1.0));
}

TEST(RemainingTime, IsUnknownAfterTheLastStep) {
  RemainingTime remaining(100, {});
  EXPECT_EQ(remaining.after(at(100, 50)), std::nullopt) << "a validation and a save may follow";
  EXPECT_EQ(remaining.after(at(101, 51)), std::nullopt);
}

TEST(RemainingTime, LeavesOutAValidationBeforeTheFirstStep) {
  RemainingTime remaining(100, {});
  remaining.begin_at(at(0, 60));
  EXPECT_THAT(remaining.after(at(20, 70)), Optional(40.0));
}

TEST(RemainingTime, AfterAResumeOnlyThisProcessCounts) {
  RemainingTime remaining(100, 50);
  EXPECT_EQ(remaining.after(at(51, 1000)), std::nullopt);
  EXPECT_THAT(remaining.after(at(61, 1020)), Optional(78.0));
}

TEST(RemainingTime, IsUnknownWithoutAnEnd) {
  EXPECT_EQ(RemainingTime({}, {}).after(at(20, 10)), std::nullopt);
}

Record record() {
  Record record;
  record.state = at(200, 65);
  record.fields = {{"loss", 2.34567},           {"lr", 6e-4},
                   {"grad_norm", 0.5},          {"tokens_per_second", 12345.6},
                   {"step_seconds", 0.1},       {"skipped", int64_t{3}},
                   {"source", std::string("a")}};
  return record;
}

TEST(ProgressLine, ShowsTheFieldsInOrder) {
  Record without_fields;
  without_fields.state = at(7, 1);
  EXPECT_EQ(join_segments(progress_segments(record(), 2000, 190.0), 1000),
            "step 200/2000  loss 2.346  lr 0.0006  grad_norm 0.5000  12.35k tokens/s  skipped 3  "
            "source a  1m05s elapsed  3m10s left");
  EXPECT_EQ(join_segments(progress_segments(without_fields, {}, {}), 1000), "step 7  1s elapsed");
}

TEST(ProgressLine, TheLeastImportantIsLeftOutFirst) {
  const auto segments = progress_segments(record(), 2000, 190.0);
  EXPECT_EQ(join_segments(segments, 90),
            "step 200/2000  loss 2.346  lr 0.0006  12.35k tokens/s  1m05s elapsed  3m10s left");
  EXPECT_EQ(join_segments(segments, 70),
            "step 200/2000  loss 2.346  lr 0.0006  12.35k tokens/s  3m10s left");
  EXPECT_EQ(join_segments(segments, 40), "step 200/2000  loss 2.346  3m10s left");
  EXPECT_EQ(join_segments(segments, 26), "step 200/2000  loss 2.346");
  EXPECT_EQ(join_segments(segments, 20), "step 200/2000");
}

TEST(ProgressLine, CountsColumnsNotBytes) {
  const std::vector<Segment> segments{{"\u8bad\u7ec3", 0}, {"caf\u00e9", 1}};
  EXPECT_EQ(join_segments(segments, 10), "\u8bad\u7ec3  caf\u00e9");
  EXPECT_EQ(join_segments(segments, 9), "\u8bad\u7ec3");
  EXPECT_EQ(join_segments(segments, 3), "\u8bad");
}

TEST(ProgressLine, NeverExceedsTheWidth) {
  const auto segments = progress_segments(record(), 2000, 190.0);
  for (size_t width = 0; width < 150; ++width) {
    EXPECT_LE(join_segments(segments, width).size(), width);
  }
}

}  // namespace
}  // namespace phalanx
