// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/lost_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/io/file.h"

namespace phalanx {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Lost : public testing::Test {
 protected:
  // What has been told since the last call.
  std::vector<std::string> told() { return std::exchange(told_, {}); }

  void lose(const std::string& log) {
    lost_.attempt(log, [] { throw IoError("write", "logs/rows", ENOSPC); });
    lost_.report_if_due();
  }

  std::chrono::steady_clock::time_point now_{};
  std::vector<std::string> told_;
  LostRecords lost_{[this](const std::string& line) { told_.push_back(line); },
                    [this] { return now_; }};
};

TEST_F(Lost, AreToldAtOnceWithTheReason) {
  lose("the sink jsonl");
  EXPECT_THAT(told(), ElementsAre("warning: the sink jsonl lacks 1 record so far: cannot write "
                                  "'logs/rows': No space left on device; free some space on that "
                                  "file system"));
}

TEST_F(Lost, AreToldOnceAMinute) {
  for (int second = 0; second < 150; ++second) {
    lose("a");
    const auto lines = told();
    if (second % 60 != 0) {
      EXPECT_THAT(lines, IsEmpty()) << second;
    } else {
      const std::string count = "a lacks " + std::to_string(second + 1) + " record";
      EXPECT_THAT(lines, ElementsAre(HasSubstr(count))) << second;
    }
    now_ += seconds(1);
  }
}

TEST_F(Lost, AreToldAMinuteLaterOnlyWhereTheyHaveBecomeMore) {
  lose("a");
  lose("b");
  EXPECT_THAT(told(), ElementsAre(HasSubstr("a lacks 1 record so far")));
  now_ += seconds(60);
  lost_.report_if_due();
  EXPECT_THAT(told(), ElementsAre(HasSubstr("b lacks 1 record so far")));
  now_ += seconds(60);
  lost_.report_if_due();
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(Lost, AreToldOnceInTheEnd) {
  lost_.report_at_end();
  EXPECT_THAT(told(), IsEmpty());
  lose("a");
  lose("a");
  lost_.add("b", {.records = 7, .why = "it is late"});
  lost_.add("c", {});
  told();
  lost_.report_at_end();
  EXPECT_THAT(told(), ElementsAre(HasSubstr("a lacks 2 records: cannot write 'logs/rows'"),
                                  "warning: b lacks 7 records: it is late"));
  lost_.report_at_end();
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(Lost, AreThoseThatTheSystemRefuses) {
  lost_.attempt("a", [] {});
  lost_.report_at_end();
  EXPECT_THAT(told(), IsEmpty());
  lost_.attempt("a", [] { throw std::system_error(EIO, std::generic_category(), "a disk"); });
  lost_.report_at_end();
  EXPECT_THAT(told(), ElementsAre("warning: a lacks 1 record: a disk: Input/output error"));
  EXPECT_THROW(lost_.attempt("a", [] { throw std::logic_error("a slip"); }), std::logic_error);
}

}  // namespace
}  // namespace phalanx
