// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/verdict.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace phalanx {
namespace {

constexpr int exited(int code) { return code << 8; }
constexpr int killed(int signal) { return signal; }

RankEnd end_at(int milliseconds, int status) {
  RankEnd end;
  end.time = LaunchClock::time_point(std::chrono::milliseconds(milliseconds));
  end.status = status;
  return end;
}

RankEnd reported(int milliseconds, const RankOutcome& outcome) {
  RankEnd end = end_at(milliseconds, exited(outcome.exit_code));
  end.report = RankReport{outcome, end.time};
  return end;
}

RankEnd failed(int milliseconds, const std::string& message, int exit_code = 1) {
  return reported(milliseconds, {exit_code, message});
}
RankEnd met_end(int milliseconds, const std::string& message = "peer closed") {
  return reported(milliseconds, {1, message, true});
}
RankEnd returned(int milliseconds, int exit_code) {
  return reported(milliseconds, {exit_code, ""});
}
RankEnd succeeded() { return reported(1, {}); }
RankEnd stopped(int milliseconds, int signal) { return reported(milliseconds, {128 + signal, ""}); }
RankEnd told(RankEnd end) {
  end.told_to_end = true;
  return end;
}
RankEnd relayed(RankEnd end) {
  end.killed_by_relayed_signal = true;
  return end;
}

RankOutcome verdict_of(const std::vector<RankEnd>& ends) { return verdict(ends, 0, "host-a"); }

struct Case {
  std::string name;
  std::vector<RankEnd> ends;
  RankOutcome outcome;
};

const std::string kKilled9 =
    "was killed by signal 9 (Killed) on host-a; if nobody sent it, the kernel's out-of-memory "
    "killer did: "
    "see dmesg";

std::vector<Case> cases() {
  return {
      {"AllSucceed", {succeeded(), succeeded()}, {}},
      {"OneFails", {succeeded(), failed(5, "no such file", 2)}, {2, "rank 1: no such file"}},
      {"EarliestOwnFailure",
       {failed(5, "later"), failed(3, "earlier"), failed(4, "between")},
       {1, "rank 1: earlier"}},
      {"NamesItselfAlready",
       {failed(5, "rank 0 found no store"), met_end(6)},
       {1, "rank 0 found no store"}},
      {"NamesWhoSaidIt", {met_end(1), failed(5, "rank 0: no space")}, {1, "rank 0: no space"}},
      {"LowestRankOfATie", {failed(5, "a"), failed(5, "b")}, {1, "rank 0: a"}},
      {"SameMessageIsNobodys",
       {failed(5, "bad path", 2), failed(3, "bad path", 2)},
       {2, "bad path"}},
      {"SameMessageDespiteOthers",
       {failed(5, "bad path"), met_end(1), failed(3, "bad path"), told(end_at(9, killed(SIGKILL)))},
       {1, "bad path"}},
      {"OwnFailureBeforeConsequences",
       {met_end(1), failed(9, "out of disk"), met_end(2)},
       {1, "rank 1: out of disk"}},
      {"EarliestConsequence", {met_end(4, "a"), met_end(2, "b")}, {1, "rank 1: b", true}},
      {"Killed", {met_end(1), end_at(7, killed(SIGKILL))}, {1, "rank 1 " + kKilled9}},
      {"Crashed",
       {end_at(7, killed(SIGSEGV)), met_end(1)},
       {1, "rank 0 was killed by signal 11 (Segmentation fault) on host-a"}},
      {"KilledBeforeOthersFail",
       {failed(8, "x"), end_at(7, killed(SIGABRT)), failed(9, "x")},
       {1, "rank 1 was killed by signal 6 (Aborted) on host-a"}},
      {"KilledAfterItsReport",
       {[] {
         RankEnd end = failed(4, "first");
         end.status = killed(SIGKILL);
         return end;
       }()},
       {1, "rank 0: first"}},
      {"KilledAfterReportingSuccess",
       {[] {
         RankEnd end = succeeded();
         end.status = killed(SIGKILL);
         return end;
       }()},
       {1, "rank 0 " + kKilled9}},
      {"Silent",
       {met_end(1), end_at(7, exited(3))},
       {3, "rank 1 left with exit code 3 without saying why"}},
      {"SilentlySuccessful",
       {met_end(1), end_at(7, exited(0))},
       {1, "rank 1 left with exit code 0 without saying why"}},
      {"ReturnedExitCode", {returned(1, 5), returned(2, 5)}, {5, ""}},
      {"FailureAfterAReturnedExitCode",
       {returned(1, 1), failed(9, "no space for the file")},
       {1, "rank 1: no space for the file"}},
      {"ReturnedExitCodeAndSuccess", {succeeded(), returned(2, 1)}, {1, ""}},
      {"ReturnedExitCodeThatOthersMeet", {met_end(1), returned(2, 3)}, {3, ""}},
      {"ToldToEndIsNoCause",
       {told(end_at(9, killed(SIGKILL))), told(failed(8, "interrupted")), met_end(5, "closed")},
       {1, "rank 2: closed", true}},
      {"ToldToEndAndStoppedIsNoCause",
       {told(stopped(9, SIGTERM)), failed(5, "broke")},
       {1, "rank 1: broke"}},
      {"Stopped", {stopped(3, SIGTERM), stopped(4, SIGTERM)}, {143, ""}},
      {"StoppedAfterSomeHadSucceeded", {succeeded(), stopped(4, SIGINT)}, {130, ""}},
      {"KilledByRelayedSignals",
       {relayed(end_at(3, killed(SIGINT))), relayed(end_at(4, killed(SIGINT)))},
       {130, ""}},
      {"KilledByRelayedSignalOthersMeetTheEnd",
       {met_end(1), relayed(end_at(4, killed(SIGTERM)))},
       {143, ""}},
      {"FailureWhileStopping",
       {stopped(1, SIGTERM), failed(9, "no space for the checkpoint")},
       {1, "rank 1: no space for the checkpoint"}},
      {"MessageOfSeveralLines", {failed(1, "a\nb")}, {1, "rank 0: a\nb"}},
  };
}

class Verdict : public testing::TestWithParam<Case> {};

TEST_P(Verdict, NamesTheCause) {
  const RankOutcome outcome = verdict_of(GetParam().ends);
  EXPECT_EQ(outcome.message, GetParam().outcome.message);
  EXPECT_EQ(outcome.exit_code, GetParam().outcome.exit_code);
  EXPECT_EQ(outcome.caused_by_peer, GetParam().outcome.caused_by_peer);
}

INSTANTIATE_TEST_SUITE_P(Table, Verdict, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(VerdictOfTheWhole, SaysWhichRankIsTheCauseAndWhatKilledIt) {
  const RankOutcome killed_rank = verdict_of({met_end(1), end_at(7, killed(SIGKILL))});
  EXPECT_EQ(killed_rank.rank, 1);
  EXPECT_EQ(killed_rank.signal, SIGKILL);
  const RankOutcome failed_rank = verdict_of({failed(2, "first"), met_end(3)});
  EXPECT_EQ(failed_rank.rank, 0);
  EXPECT_EQ(failed_rank.signal, 0);
  EXPECT_EQ(verdict_of({met_end(1), end_at(7, exited(3))}).rank, 1);
  RankEnd found = met_end(2, "rank 2: gave no sign of life");
  found.report->outcome.rank = 2;
  const RankOutcome missed = verdict_of({found, met_end(3), told(end_at(9, killed(SIGKILL)))});
  EXPECT_EQ(missed.rank, 2);
  EXPECT_EQ(missed.message, "rank 2: gave no sign of life");
  EXPECT_EQ(verdict_of({failed(5, "bad path", 2), failed(3, "bad path", 2)}).rank, std::nullopt);
  EXPECT_EQ(verdict_of({stopped(3, SIGTERM), stopped(4, SIGTERM)}).rank, std::nullopt);
}

TEST(BreaksTheRun, EveryEndButSuccessAndAStopAsAsked) {
  EXPECT_FALSE(breaks_the_run(succeeded()));
  EXPECT_FALSE(breaks_the_run(stopped(1, SIGTERM)));
  EXPECT_TRUE(breaks_the_run(failed(1, "x")));
  EXPECT_TRUE(breaks_the_run(failed(1, "x", 143)));
  EXPECT_TRUE(breaks_the_run(met_end(1)));
  EXPECT_TRUE(breaks_the_run(end_at(1, exited(0))));
  EXPECT_TRUE(breaks_the_run(end_at(1, exited(143))));
  EXPECT_TRUE(breaks_the_run(end_at(1, killed(SIGTERM))));
  EXPECT_TRUE(breaks_the_run(relayed(end_at(1, killed(SIGTERM)))));
}

TEST(Verdict, RanksThatObeyedAreNoFailure) {
  RankEnd saved;
  saved.report = RankReport{.outcome = {.exit_code = kSignalBase + SIGTERM}};
  saved.told_to_end = true;
  EXPECT_EQ(verdict_of({saved, saved}), (RankOutcome{.exit_code = kSignalBase + SIGTERM}));
  RankEnd killed;
  killed.status = SIGTERM;
  killed.told_to_end = true;
  EXPECT_EQ(verdict_of({killed}), (RankOutcome{.exit_code = kSignalBase + SIGTERM}));
  killed.status = SIGKILL;
  EXPECT_NE(verdict_of({killed}).message, "");
}

}  // namespace
}  // namespace phalanx
