// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/selection.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace phalanx::compute {
namespace {

namespace fs = std::filesystem;

const TimedModel kModel = {.config = "{name: small}", .shapes = [] {
                             return std::vector<WeightShape>{{256, 64}, {64, 256}};
                           }};

fs::path empty_folder(const std::string& name) {
  fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  return folder;
}

TEST(Fastest, IsTheDefaultUnlessAnotherOneGains) {
  const Selection none = fastest({{Gemm::library_default, 1.0, ""}, {Gemm::mkl, 0.97, ""}});
  EXPECT_EQ(none.gemm, Gemm::library_default);
  EXPECT_EQ(none.gain, 1);
  const Selection mkl =
      fastest({{Gemm::library_default, 1.0, ""}, {Gemm::mkl, 0.5, ""}, {Gemm::onednn, 0.51, ""}});
  EXPECT_EQ(mkl.gemm, Gemm::mkl);
  EXPECT_EQ(mkl.gain, 2);
}

TEST(Fastest, LeavesOutWhatIsExcluded) {
  const Selection selection = fastest({{Gemm::library_default, 1.0, ""},
                                       {Gemm::mkl, 0.1, "its results differ by more than rounding"},
                                       {Gemm::onednn, 0.8, ""}});
  EXPECT_EQ(selection.gemm, Gemm::onednn);
  EXPECT_EQ(selection.notes,
            std::vector<std::string>{"mkl: its results differ by more than rounding"});
}

TEST(TimeProducts, TimesEachCandidateWithinItsBudget) {
  const std::vector<Gemm> gemms = candidates();
  const auto timings = time_products(gemms, kModel.shapes, std::chrono::milliseconds(50));
  ASSERT_EQ(timings.size(), gemms.size());
  for (size_t i = 0; i < gemms.size(); ++i) {
    EXPECT_EQ(timings[i].gemm, gemms[i]);
    EXPECT_EQ(timings[i].excluded, "");
    EXPECT_GT(timings[i].seconds, 0);
  }
}

// As an instruction that the CPU does not have would end it.
TEST(TimeProducts, ExcludesACandidateWhoseProcessDies) {
  const std::vector<Gemm> gemms = {Gemm::library_default};
  const auto dies = []() -> std::vector<WeightShape> {
    std::raise(SIGKILL);
    return {};
  };
  EXPECT_EQ(time_products(gemms, dies).front().excluded, "its process failed");
  const auto throws = []() -> std::vector<WeightShape> { throw std::runtime_error("no shapes"); };
  EXPECT_EQ(time_products(gemms, throws).front().excluded, "its process failed");
}

TEST(SelectGemm, IsKeptForThisModelOnly) {
  if (candidates().size() == 1) GTEST_SKIP() << "this machine has one candidate";
  const fs::path cache = empty_folder("gemm_cache");
  const Selection first = select_gemm(kModel, cache);
  ASSERT_EQ(std::distance(fs::directory_iterator(cache), {}), 1);
  const TimedModel again = {.config = kModel.config, .shapes = []() -> std::vector<WeightShape> {
                              ADD_FAILURE() << "timed again";
                              return {};
                            }};
  const Selection kept = select_gemm(again, cache);
  EXPECT_EQ(kept.gemm, first.gemm);
  EXPECT_EQ(kept.gain, first.gain);
  select_gemm({.config = "{name: other}", .shapes = kModel.shapes}, cache);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache), {}), 2);
}

TEST(SelectGemm, TimesAgainWhatItCannotRead) {
  if (candidates().size() == 1) GTEST_SKIP() << "this machine has one candidate";
  const fs::path cache = empty_folder("torn_gemm_cache");
  select_gemm(kModel, cache);
  const fs::path file = fs::directory_iterator(cache)->path();
  for (const char* torn : {"", "{", "[]", "{\"gemm\": \"auto\"}", "{\"key\": 1, \"gemm\": 7}"}) {
    std::ofstream(file) << torn;
    select_gemm(kModel, cache);
    std::ifstream written(file);
    EXPECT_NE(nlohmann::json::parse(written).at("gemm"), "auto") << torn;
  }
}

TEST(SelectGemm, IsTheDefaultWhereNoProcessCanBeMade) {
  if (candidates().size() == 1) GTEST_SKIP() << "this machine has one candidate";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Selection selection = select_gemm(kModel, std::nullopt);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(selection.gemm, Gemm::library_default);
  EXPECT_EQ(selection.notes, std::vector<std::string>{"cannot make a socket: Too many open files"});
}

TEST(SelectGemm, NeedsNoCache) {
  select_gemm(kModel, std::nullopt);
  select_gemm(kModel, "/proc/no_such_folder");
}

}  // namespace
}  // namespace phalanx::compute
