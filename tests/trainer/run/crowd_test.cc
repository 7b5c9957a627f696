// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/host/gpus.h"
#include "trainer/run/run_in_ranks.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

class Starting : public Launcher {
 public:
  explicit Starting(std::optional<int64_t> processes) : processes_(processes) {}

  RankOutcome launch(const RankMain&) override { return {}; }
  std::optional<int64_t> processes() const override { return processes_; }

 private:
  std::optional<int64_t> processes_;
};

std::string warning_of(std::optional<int64_t> processes) {
  testing::internal::CaptureStderr();
  warn_of_crowd(Starting(processes));
  return testing::internal::GetCapturedStderr();
}

TEST(Crowd, IsWarnedOfBeyondFourRanksACore) {
  if (usable_gpus() > 0) GTEST_SKIP() << "GPUs compute for the ranks";
  const int64_t cores = usable_cores();
  EXPECT_EQ(warning_of(4 * cores), "");
  EXPECT_EQ(warning_of(std::nullopt), "");
  EXPECT_THAT(warning_of(4 * cores + 1), HasSubstr("ranks share"));
}

}  // namespace
}  // namespace phalanx
