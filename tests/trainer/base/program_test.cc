// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

TEST(Program, IsNamedAsItWasCalled) {
  const std::string name = program_name();
  EXPECT_NE(name.find("base_test"), std::string::npos) << name;
}

TEST(Program, HasAUsualNameWhereTheSystemDoesNotSay) {
  const TemporaryFolder folder;
  EXPECT_EQ(program_name(folder.path()), "trainer");
  fs::create_directories(folder / "proc/self");
  std::ofstream(folder / "proc/self/cmdline") << std::string_view("./my trainer\0a.yaml\0", 20);
  EXPECT_EQ(program_name(folder.path()), "./my trainer");
}

/// A workspace with a program that Bazel has built, and where `bazel run` calls it.
class ProgramOfBazel : public testing::Test {
 protected:
  ProgramOfBazel() {
    fs::create_directories(output_.parent_path());
    std::ofstream(output_) << "program";
    fs::create_directories(folder_ / "workspace/configs");
    fs::create_directory_symlink(folder_ / "outputs/bazel-out/k8-opt/bin",
                                 folder_ / "workspace/bazel-bin");
    fs::create_directories(folder_ / "proc/self");
    std::ofstream(folder_ / "proc/self/cmdline") << kCalled << '\0';
    fs::create_symlink(output_, folder_ / "proc/self/exe");
    ::setenv("BUILD_WORKSPACE_DIRECTORY", (folder_ / "workspace").c_str(), 1);
  }
  ~ProgramOfBazel() override {
    ::unsetenv("BUILD_WORKSPACE_DIRECTORY");
    fs::current_path(stood_);
  }

  std::string name_in(const std::string& place) const {
    fs::current_path(folder_ / place);
    return program_name(folder_.path());
  }

  static constexpr const char* kCalled = "/outputs/bazel-out/k8-opt/bin/trainer/trainer";
  const fs::path stood_ = fs::current_path();
  TemporaryFolder folder_;
  fs::path output_ = folder_ / "outputs/bazel-out/k8-opt/bin/trainer/trainer";
};

TEST_F(ProgramOfBazel, IsNamedByItsLinkInTheWorkspace) {
  EXPECT_EQ(name_in("workspace"), "bazel-bin/trainer/trainer");
  EXPECT_EQ(name_in("workspace/configs"), "../bazel-bin/trainer/trainer");
}

TEST_F(ProgramOfBazel, IsNamedAsItWasCalledWhereALinkLeadsElsewhere) {
  fs::remove(folder_ / "workspace/bazel-bin");
  EXPECT_EQ(name_in("workspace"), kCalled);
  fs::create_directories(folder_ / "workspace/bazel-bin/trainer");
  std::ofstream(folder_ / "workspace/bazel-bin/trainer/trainer") << "another one";
  EXPECT_EQ(name_in("workspace"), kCalled);
}

}  // namespace
}  // namespace phalanx
