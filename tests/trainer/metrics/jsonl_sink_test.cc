// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/sinks/jsonl_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Json = nlohmann::json;

Record record_at(int64_t step, Phase phase = Phase::train) {
  Record record;
  record.phase = phase;
  record.state.step = step;
  record.fields = {{"loss", 1.0 / static_cast<double>(step)}};
  return record;
}

std::vector<int64_t> steps_in(const std::filesystem::path& path) {
  std::istringstream rows(slurp(path));
  std::vector<int64_t> steps;
  for (std::string row; std::getline(rows, row);) steps.push_back(Json::parse(row).at("step"));
  return steps;
}

// Writes records through a sink that was opened on this folder.
void log(const TemporaryFolder& folder, std::optional<int64_t> resumed_step,
         const std::vector<Record>& records, bool validation_due = false) {
  JsonlSink sink({});
  RunDescription run;
  run.validation_due = validation_due;
  run.log_dir = folder.path();
  sink.open(run, resumed_step);
  for (const Record& record : records) sink.write(record);
  sink.close();
}

TEST(JsonRow, HoldsStateAndFieldsInOrder) {
  Record record;
  record.state = {.phase = Phase::train,
                  .epoch = 1,
                  .step = 20,
                  .samples = 640,
                  .tokens = 40960,
                  .epoch_samples = 0,
                  .elapsed = 2.5};
  record.fields = {
      {"loss", 0.1}, {"lr", 6e-4}, {"skipped", int64_t{2}}, {"note", std::string("a\"b\n")}};
  record.time = 1e9;
  EXPECT_EQ(format_json_row(record),
            R"({"step":20,"epoch":1,"samples":640,"tokens":40960,"phase":"train","loss":0.1,)"
            R"("lr":0.0006,"skipped":2,"note":"a\"b\n","elapsed":2.5,"time":1000000000.0})");
  record.phase = Phase::validate;
  EXPECT_EQ(Json::parse(format_json_row(record)).at("phase"), "validate");
}

TEST(JsonRow, RealsReadBackEqual) {
  for (const double value : {0.1, 1.0 / 3, 2.2250738585072014e-308, 5e-324, 1.7976931348623157e308,
                             123456789.123456789, -0.0}) {
    Record record;
    record.fields = {{"x", value}};
    EXPECT_EQ(Json::parse(format_json_row(record)).at("x").get<double>(), value);
  }
}

TEST(JsonRow, WhatIsNotFiniteIsNullAndNamed) {
  Record record;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  record.fields = {{"loss", std::numeric_limits<double>::quiet_NaN()},
                   {"grad_norm", kInfinity},
                   {"low", -kInfinity},
                   {"lr", 1.0}};
  const Json row = Json::parse(format_json_row(record));
  EXPECT_TRUE(row.at("loss").is_null());
  EXPECT_TRUE(row.at("grad_norm").is_null());
  EXPECT_EQ(row.at("nonfinite"), Json({{"loss", "nan"}, {"grad_norm", "inf"}, {"low", "-inf"}}));
  EXPECT_EQ(row.at("lr"), 1.0);
}

TEST(JsonRow, AnInvalidTextDoesNotEndTheRun) {
  Record record;
  record.fields = {{"note", std::string("\xC3\x28")}};
  EXPECT_EQ(Json::parse(format_json_row(record)).at("note"), "\xEF\xBF\xBD(");
}

TEST(JsonlSink, WritesARowARecord) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10), record_at(20), record_at(20, Phase::validate)});
  EXPECT_THAT(steps_in(folder / "metrics.jsonl"), ElementsAre(10, 20, 20));
}

TEST(JsonlSink, AResumedRunCutsWhatComesAgain) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10), record_at(20), record_at(20, Phase::validate), record_at(30)});
  const std::string first_rows = slurp(folder / "metrics.jsonl");
  log(folder, 20, {record_at(30), record_at(40)});
  EXPECT_THAT(steps_in(folder / "metrics.jsonl"), ElementsAre(10, 20, 20, 30, 40));
  // What stays is the same text.
  const std::string rows = slurp(folder / "metrics.jsonl");
  EXPECT_EQ(rows.substr(0, rows.find("\"step\":30")),
            first_rows.substr(0, first_rows.find("\"step\":30")));
}

TEST(JsonlSink, SetsAsideWhatComesAgain) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10), record_at(20), record_at(30), record_at(30, Phase::validate)});
  const std::string rows = slurp(folder / "metrics.jsonl");
  log(folder, 20, {record_at(30)});
  EXPECT_EQ(slurp(folder / kReplacedRows), rows.substr(rows.find("{\"step\":30"))) << "both rows";
  log(folder, 20, {record_at(30), record_at(40)});
  EXPECT_THAT(steps_in(folder / kReplacedRows), ElementsAre(30, 30, 30));
  log(folder, 40, {});
  EXPECT_THAT(steps_in(folder / kReplacedRows), ElementsAre(30, 30, 30)) << "nothing more";
}

TEST(JsonlSink, ARunFromNothingStartsTheFileAnew) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10)});
  log(folder, {}, {record_at(10), record_at(20)});
  EXPECT_THAT(steps_in(folder / "metrics.jsonl"), ElementsAre(10, 20));
  EXPECT_THAT(steps_in(folder / kReplacedRows), ElementsAre(10)) << "it was trained";
}

TEST(JsonlSink, ATornLastRowIsDroppedWhereverItIsTorn) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10), record_at(20)});
  const std::string rows = slurp(folder / "metrics.jsonl");
  const size_t first_row = rows.find('\n') + 1;
  for (size_t size = first_row; size < rows.size(); ++size) {
    spill(folder / "metrics.jsonl", rows.substr(0, size));
    log(folder, 100, {record_at(110)});
    ASSERT_THAT(steps_in(folder / "metrics.jsonl"), ElementsAre(10, 110)) << size;
  }
}

TEST(JsonlSink, RubbishAmongTheRowsIsDropped) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10)});
  spill(folder / "metrics.jsonl", slurp(folder / "metrics.jsonl") + std::string(100, '\0') +
                                      "\n[]\n{\"step\":\"9\"}\n{}\n\n{\"step\":11}\n");
  log(folder, 100, {});
  EXPECT_THAT(steps_in(folder / "metrics.jsonl"), ElementsAre(10, 11));
}

TEST(JsonlSink, AFileWithNothingToCutIsNotRewritten) {
  const TemporaryFolder folder;
  log(folder, {}, {record_at(10)});
  const auto before = std::filesystem::last_write_time(folder / "metrics.jsonl");
  std::filesystem::create_hard_link(folder / "metrics.jsonl", folder / "same");
  cut_rows_after(folder / "metrics.jsonl", 10, /*validation_due=*/false);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "metrics.jsonl"), before);
  EXPECT_TRUE(std::filesystem::equivalent(folder / "metrics.jsonl", folder / "same"));
  cut_rows_after(folder / "none", 10, /*validation_due=*/false);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(JsonlSink, AMissingFolderIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  JsonlSink sink({});
  RunDescription run;
  run.log_dir = folder / "none";
  EXPECT_THAT([&] { sink.open(run, {}); },
              testing::ThrowsMessage<IoError>(testing::HasSubstr("none/metrics.jsonl")));
}

TEST(JsonlSink, AValidationThatIsMadeAgainHasOneRow) {
  const TemporaryFolder folder;
  const auto phases = [&] {
    std::istringstream rows(slurp(folder.path() / "metrics.jsonl"));
    std::vector<std::string> found;
    for (std::string row; std::getline(rows, row);) found.push_back(Json::parse(row).at("phase"));
    return found;
  };
  log(folder, {}, {record_at(1, Phase::validate), record_at(2), record_at(2, Phase::validate)});
  log(folder, 2, {});
  EXPECT_THAT(phases(), ElementsAre("validate", "train", "validate"));
  log(folder, 2, {record_at(2, Phase::validate), record_at(3)}, /*validation_due=*/true);
  EXPECT_THAT(phases(), ElementsAre("validate", "train", "validate", "train"));
}

}  // namespace
}  // namespace phalanx
