// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {

/// Steps 1 and 2 of a run of four ranks on two hosts, in several files, each test's own. The ranks
/// are forked before anything else runs, so a program has one suite of it.
class SavedByRanks : public testing::Test {
 protected:
  static constexpr int64_t kRanks = 4;
  static constexpr int64_t kNewest = 2;

  /// `elements`: of the larger tensors.
  static void save(int64_t elements, const PlanLimits& limits);
  static void TearDownTestSuite() { saved_.reset(); }

  SavedByRanks();

  std::filesystem::path newest() const { return folder_.path() / step_folder_name(kNewest); }
  std::filesystem::path older() const { return folder_.path() / step_folder_name(1); }

  /// The names of the newest checkpoint's files.
  std::vector<std::string> files() const;

  /// What a run that goes on in one rank gets.
  struct Found {
    int64_t step = -1;
    bool is_right = false;              ///< All its values are those of that step.
    std::vector<std::string> warnings;  ///< What was skipped.
  };
  Found load() const;

  /// What verifying the newest says is wrong; empty: nothing.
  std::string verdict() const;

  TemporaryFolder folder_;
  inline static int64_t elements_ = 0;

 private:
  inline static std::unique_ptr<TemporaryFolder> saved_;
};

}  // namespace phalanx
