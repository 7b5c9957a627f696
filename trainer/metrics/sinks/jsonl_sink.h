// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/config/tree/no_fields.h"
#include "trainer/io/log_file.h"
#include "trainer/metrics/sink.h"

namespace phalanx {

/// A record as one line of JSON, without the line's end: step, epoch, samples, tokens, phase, the
/// record's fields, elapsed, time. Reals are written so that they read back equal; those that JSON
/// has no word for are null and named in "nonfinite", as in {"loss": null, "nonfinite": {"loss":
/// "nan"}}.
std::string format_json_row(const Record& record);

/// Rows that a resume has taken out of metrics.jsonl, beside it.
inline constexpr const char* kReplacedRows = "metrics.replaced.jsonl";

/// Takes out of a file of such lines the rows of later steps and, where this step is validated
/// again (`validation_due`), those of its validation: they are added to kReplacedRows first. Drops
/// what is no whole row. Replaces the file at once; does nothing without such lines, or without the
/// file.
void cut_rows_after(const std::filesystem::path& path, int64_t step, bool validation_due);

/// `<log_dir>/metrics.jsonl`: one object a record, each written whole by one call.
class JsonlSink : public Sink {
 public:
  using Config = config::NoFields;

  explicit JsonlSink(const Config&) {}

  void open(const RunDescription& run, std::optional<int64_t> resumed_step) override;
  void write(const Record& record) override;
  void close() override;

 private:
  std::optional<LogFile> file_;
};

}  // namespace phalanx
