// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace phalanx::compute {
namespace {

namespace fs = std::filesystem;

std::string described(const std::string& cpuinfo) {
  const fs::path root = fs::path(testing::TempDir()) / "root";
  fs::create_directories(root / "proc");
  std::ofstream(root / "proc/cpuinfo") << cpuinfo;
  return describe_cpu(root);
}

TEST(DescribeCpu, NamesTheFirstCoreAndItsSets) {
  EXPECT_EQ(described("processor\t: 0\nmodel name\t: AMD EPYC 7763\n"
                      "flags\t\t: fpu sse2 fma avx2 avx bmi2\n\nmodel name\t: another\n"),
            "AMD EPYC 7763, avx avx2 fma");
}

TEST(DescribeCpu, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(described("processor : 0\n"), "unknown");
  EXPECT_EQ(described("flags : avx2\n"), "unknown, avx2");
  EXPECT_EQ(describe_cpu("/no_such_root"), "unknown");
}

}  // namespace
}  // namespace phalanx::compute
