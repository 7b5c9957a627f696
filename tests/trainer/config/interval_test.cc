// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/interval.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

using std::chrono::milliseconds;

struct Waiting {
  Interval every{std::chrono::minutes(5)};
  std::optional<Interval> at_most;

  static void describe(Schema<Waiting>& s) {
    s.field("every", &Waiting::every, "how often");
    s.field("at_most", &Waiting::at_most, "how long");
  }
};

Node resolved(const std::string& every) {
  Diagnostics diagnostics;
  const Node tree = parse_yaml("every: " + every, "test.yaml", diagnostics);
  Node config = resolve(declaration<Waiting>(), tree, diagnostics);
  diagnostics.throw_if_any();
  return config;
}

milliseconds read_every(const std::string& every) {
  return read<Waiting>(resolved(every)).every.length;
}

std::string mistake(const std::string& every) {
  try {
    resolved(every);
  } catch (const ConfigError& error) {
    return error.mistakes().all().front().message;
  }
  return "none";
}

TEST(Interval, IsADurationOrANumberOfSeconds) {
  EXPECT_EQ(read_every("30m"), std::chrono::minutes(30));
  EXPECT_EQ(read_every("1h30m"), std::chrono::minutes(90));
  EXPECT_EQ(read_every("1800"), std::chrono::minutes(30));
  EXPECT_EQ(read_every("1.8e3"), std::chrono::minutes(30));
  EXPECT_EQ(read_every("0.5"), milliseconds(500));
  EXPECT_EQ(read_every("1e-9"), milliseconds(1)) << "not none";
  EXPECT_EQ(read<Waiting>(resolved("2h")).at_most.has_value(), false);
}

TEST(Interval, IsPrintedAsTheSameDurationHoweverItWasGiven) {
  EXPECT_EQ(print(resolved("1800")), "every: 30m\nat_most: null\n");
  EXPECT_TRUE(same_value(resolved("1800.0"), resolved("30m")));
  EXPECT_EQ(print(write(Waiting{.at_most = Interval{milliseconds(1500)}})),
            "every: 5m\nat_most: 1500ms\n");
}

TEST(Interval, RefusesWhatIsNoTime) {
  const std::string expected = "; expected a duration (90s, 30m, 1h30m) or a number of seconds > 0";
  for (const char* text : {"0", "0s", "-5", ".inf", ".nan", "1e300"}) {
    EXPECT_EQ(mistake(text), "'" + std::string(text) + "' is out of range" + expected);
  }
  EXPECT_EQ(mistake("5 mins"), "'5 mins' is not a duration; write 5m" + expected);
}

}  // namespace
}  // namespace phalanx::config
