// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx::tiny {

/// A folder for one test, removed with it.
class RunDir {
 public:
  RunDir() {
    std::string pattern = testing::TempDir() + "/run_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  RunDir(const RunDir&) = delete;
  RunDir& operator=(const RunDir&) = delete;
  ~RunDir() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

  /// Names of what is in a folder below it, sorted.
  std::vector<std::string> names(const std::filesystem::path& folder) const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(path_ / folder)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(path_ / folder)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  /// The checkpoints in it, "step-00000002" and so on.
  std::vector<std::string> checkpoints() const {
    auto all = names("checkpoints");
    std::erase_if(all, [](const auto& name) { return !name.starts_with("step-"); });
    return all;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace phalanx::tiny
