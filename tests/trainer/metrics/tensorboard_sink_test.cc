// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/sinks/tensorboard_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/metrics/event.h"
#include "trainer/metrics/sinks/jsonl_sink.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

// The event files in the order in which TensorBoard reads them.
std::vector<std::filesystem::path> files_in(const TemporaryFolder& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void log(const TemporaryFolder& folder, std::optional<int64_t> resumed_step,
         const std::vector<Record>& records) {
  TensorboardSink sink({});
  RunDescription run;
  run.log_dir = folder.path();
  sink.open(run, resumed_step);
  for (const Record& record : records) sink.write(record);
  sink.close();
}

Record example() {
  Record record;
  record.state.step = 20;
  record.fields = {{"loss", 0.1}, {"skipped", int64_t{2}}, {"note", std::string("text")}};
  record.time = 5.0;
  return record;
}

TEST(TensorboardSink, WritesNumbersUnderPhaseAndName) {
  const TemporaryFolder folder;
  log(folder, {}, {example()});
  ASSERT_EQ(files_in(folder).size(), 1U);
  const std::string bytes = slurp(files_in(folder)[0]);
  EXPECT_THAT(bytes, HasSubstr("brain.Event:2"));
  EXPECT_THAT(bytes, testing::EndsWith(encode_record(encode_scalars_event(
                         5.0, 20, {{"train/loss", 0.1F}, {"train/skipped", 2.0F}}))));
}

TEST(TensorboardSink, AFirstFileStartsNoSession) {
  const TemporaryFolder folder;
  log(folder, {}, {});
  EXPECT_EQ(slurp(files_in(folder)[0]).size(), encode_record(encode_file_version_event(0)).size());
}

TEST(TensorboardSink, EveryLaterFileComesLastAndStartsItsSession) {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> before;
  for (int round = 0; round < 5; ++round) {
    log(folder, 20, {});
    const auto now = files_in(folder);
    ASSERT_EQ(now.size(), before.size() + 1);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), now.begin()));
    // The session's start: status 1 at step 21.
    EXPECT_THAT(slurp(now.back()), HasSubstr(std::string("\x10\x15\x3A\x02\x08\x01")));
    before = now;
  }
}

// A crash cuts a file anywhere.
TEST(TensorboardSink, ALaterFileFindsTheEarlierWithoutHalfAnEvent) {
  const TemporaryFolder whole;
  log(whole, {}, {example(), example()});
  const std::string bytes = slurp(files_in(whole)[0]);
  const size_t event =
      encode_record(encode_scalars_event(5.0, 20, {{"train/loss", 0.1F}, {"train/skipped", 2.0F}}))
          .size();
  const size_t first_two = bytes.size() - event;
  for (size_t size = first_two; size <= bytes.size(); ++size) {
    const TemporaryFolder folder;
    spill(folder / "events.out.tfevents.0000000001.host.1.0", bytes.substr(0, size));
    log(folder, 20, {});
    ASSERT_EQ(files_in(folder).size(), 2U);
    ASSERT_EQ(slurp(files_in(folder)[0]), size < bytes.size() ? bytes.substr(0, first_two) : bytes)
        << size;
  }
}

TEST(TensorboardSink, ALaterFileLeavesWhatIsNoEventFileAsItIs) {
  for (const std::string& bytes : {std::string(), std::string(40, '\0'), std::string(40, 'x')}) {
    const TemporaryFolder folder;
    spill(folder / "events.out.tfevents.0000000001.host.1.0", bytes);
    log(folder, 20, {});
    EXPECT_EQ(slurp(files_in(folder)[0]), bytes);
  }
}

TEST(TensorboardSink, ARecordWithoutNumbersIsLeftOut) {
  const TemporaryFolder folder;
  Record record;
  record.fields = {{"note", std::string("text")}};
  log(folder, {}, {record});
  EXPECT_THAT(slurp(files_in(folder)[0]), Not(HasSubstr("train/")));
}

TEST(Sinks, RegisterThemselves) {
  EXPECT_THAT(Registry<Sink>::instance().table().names(),
              IsSupersetOf({"jsonl", "progress", "tensorboard"}));
  EXPECT_NE(Registry<Sink>::instance().at("jsonl").declaration(), nullptr);
}

}  // namespace
}  // namespace phalanx
