// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "trainer/registry/registry.h"

namespace phalanx {
namespace {

using ::testing::UnorderedElementsAre;

// The files that registered something. One of the product's own stands here by name, so that
// linking all of a kind, which a new file would join, fails.
TEST(FixedRegistrations, AreOfTheseFilesAlone) {
  std::set<std::string> files;
  for (const NameTable* table : NameTable::all()) {
    for (const Registration& registration : table->registrations()) files.insert(registration.file);
  }
  EXPECT_THAT(files,
              UnorderedElementsAre(
                  "tests/fixed_trainer/compositions.cc", "tests/fixed_trainer/optimizers.cc",
                  "tests/fixed_trainer/schedules.cc", "tests/fixed_trainer/tasks.cc",
                  "tests/fixed_trainer/tower.cc",
                  "trainer/launch/launchers/local_launcher/forced_launcher.cc",
                  "trainer/launch/launchers/local_launcher/local_launcher.cc",
                  "trainer/metrics/sinks/jsonl_sink.cc", "trainer/metrics/sinks/progress_sink.cc",
                  "trainer/metrics/sinks/tensorboard_sink.cc",
                  "trainer/parallel/ddp/comm_hooks/allreduce.cc",
                  "trainer/parallel/ddp/comm_hooks/compress.cc"));
}

}  // namespace
}  // namespace phalanx
