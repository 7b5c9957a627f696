// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/mixins/run_dir.h"
#include "trainer/commands/command_line.h"

namespace phalanx::tiny {

/// A config for what tiny_registered.cc registers: eight steps, a checkpoint every two.
inline constexpr const char* kConfig = R"(name: tiny
training: {max_steps: 8, batch_size: 4}
checkpoint: {save_every_n_steps: 2}
task: regression
model: linear
optimizer: descent
)";

/// Each test stands in a folder of its own, which holds tiny.yaml.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() : stood_(std::filesystem::current_path()) {
    std::filesystem::current_path(dir_.path());
    write("tiny.yaml", kConfig);
  }
  ~CommandTest() override { std::filesystem::current_path(stood_); }

  static void write(const std::filesystem::path& path, const std::string& text) {
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  static std::string read(const std::filesystem::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  /// What a command line did.
  struct Outcome {
    int code = 0;
    std::string output;
    std::string errors;
  };

  /// Runs `trainer ARGUMENTS`.
  static Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "trainer");
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = run_command_line(static_cast<int>(argv.size()), argv.data());
    outcome.output = ::testing::internal::GetCapturedStdout();
    outcome.errors = ::testing::internal::GetCapturedStderr();
    return outcome;
  }

  RunDir dir_;

 private:
  std::filesystem::path stood_;
};

}  // namespace phalanx::tiny
