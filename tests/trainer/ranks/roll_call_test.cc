// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/roll_call.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace phalanx {
namespace {

const std::vector<std::string> kHosts{"a", "a", "b", "b"};

SignOfLife sign(int64_t operations, const std::string& activity = "step 3, backward") {
  return {.operations = operations, .activity = activity};
}

std::string found(const SignsOfLife& signs, int64_t asker = 0) {
  const auto missing = missing_rank(signs, asker, kHosts);
  return missing ? missing->text : "";
}

TEST(RollCall, NamesARankThatDoesNotAnswer) {
  EXPECT_EQ(found({sign(7), sign(7), std::nullopt, sign(7)}),
            "rank 2: gave no sign of life on b; rank 0 waits for it in step 3, backward");
  EXPECT_EQ(found({sign(7), std::nullopt, sign(7), sign(7)}, 3),
            "rank 1: gave no sign of life on a; rank 3 waits for it in step 3, backward");
}

TEST(RollCall, NamesAHostOfWhichNobodyAnswers) {
  EXPECT_EQ(found({sign(7), sign(7), std::nullopt, std::nullopt}),
            "rank 2: gave no sign of life on b, nor did rank 3 on b (no rank on b answers: is the "
            "host up, and the network to it?); rank 0 waits for it in step 3, backward");
  EXPECT_EQ(found({sign(7), std::nullopt, std::nullopt, sign(7)}),
            "rank 1: gave no sign of life on a, nor did rank 2 on b; rank 0 waits for it in step "
            "3, backward");
}

TEST(RollCall, ASilentRankComesBeforeOneThatIsBehind) {
  EXPECT_EQ(missing_rank({sign(7), sign(5), sign(7), std::nullopt}, 0, kHosts)->rank, 3);
}

TEST(RollCall, NamesARankThatAnswersAndIsBehind) {
  EXPECT_EQ(found({sign(7), sign(7), sign(6, "step 3, forward"), sign(7)}),
            "rank 2: step 3, forward: its process on b answers, but did not come to what rank 0 "
            "waits for in step 3, backward");
  EXPECT_EQ(missing_rank({sign(7), sign(7), sign(7, "step 3, forward"), sign(7)}, 0, kHosts)->rank,
            2);
}

TEST(RollCall, AccusesNobodyWhereAllAreAlike) {
  EXPECT_FALSE(missing_rank({sign(7), sign(7), sign(7), sign(7)}, 0, kHosts));
  EXPECT_FALSE(missing_rank({sign(6), sign(7), sign(7), sign(7)}, 0, kHosts));
  EXPECT_FALSE(missing_rank({sign(7), sign(7, "x"), sign(7, "y"), sign(7)}, 0, kHosts));
}

TEST(RollCall, ASignSurvivesItsWayThroughTheStore) {
  const SignOfLife sent = sign(1234567890123);
  const SignOfLife received = roll_call::sign_in(roll_call::to_text(sent));
  EXPECT_EQ(received.operations, sent.operations);
  EXPECT_EQ(received.activity, sent.activity);
}

}  // namespace
}  // namespace phalanx
