// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/sinks/jsonl_sink.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/io/file.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void add_real(Json& row, Json& nonfinite, const std::string& name, double value) {
  row[name] = value;
  if (std::isfinite(value)) return;
  row[name] = nullptr;
  nonfinite[name] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

enum class Fate { kept, replaced, dropped };

// What becomes of a line in a run that is resumed after `step`: a validation which it makes again
// is replaced, what is no row is dropped.
Fate fate_of(const std::string& line, int64_t step, bool validation_due) {
  const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object()) return Fate::dropped;
  const auto found = row.find("step");
  if (found == row.end() || !found->is_number_integer()) return Fate::dropped;
  const auto of_row = found->get<int64_t>();
  if (of_row != step || !validation_due) return of_row <= step ? Fate::kept : Fate::replaced;
  const auto phase = row.find("phase");
  const bool is_validation =
      phase != row.end() && *phase == std::string(to_string(Phase::validate));
  return is_validation ? Fate::replaced : Fate::kept;
}

}  // namespace

std::string format_json_row(const Record& record) {
  Json row;
  Json nonfinite;
  row["step"] = record.state.step;
  row["epoch"] = record.state.epoch;
  row["samples"] = record.state.samples;
  row["tokens"] = record.state.tokens;
  row["phase"] = to_string(record.phase);
  for (const auto& [name, value] : record.fields) {
    if (const auto* real = std::get_if<double>(&value)) {
      add_real(row, nonfinite, name, *real);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      row[name] = *integer;
    } else {
      row[name] = std::get<std::string>(value);
    }
  }
  row["elapsed"] = record.state.elapsed;
  row["time"] = record.time;
  if (!nonfinite.empty()) row["nonfinite"] = nonfinite;
  return row.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void cut_rows_after(const fs::path& path, int64_t step, bool validation_due) {
  std::ifstream rows(path, std::ios::binary);
  if (!rows) return;
  std::string kept, replaced;
  bool cut = false;
  for (std::string line; std::getline(rows, line);) {
    // A last line without an end was torn by a crash, even where it happens to be valid.
    const Fate fate = rows.eof() ? Fate::dropped : fate_of(line, step, validation_due);
    if (fate == Fate::kept) kept.append(line).append("\n");
    if (fate == Fate::replaced) replaced.append(line).append("\n");
    cut = cut || fate != Fate::kept;
  }
  if (!replaced.empty()) {
    // Durable first: a power cut may leave a row twice, and never takes it.
    LogFile kept_beside(path.parent_path() / kReplacedRows);
    kept_beside.append(replaced);
    kept_beside.sync();
  }
  if (cut) replace_file(path, kept);
}

void JsonlSink::open(const RunDescription& run, std::optional<int64_t> resumed_step) {
  const fs::path path = fs::path(run.log_dir) / "metrics.jsonl";
  cut_rows_after(path, resumed_step.value_or(0), run.validation_due);
  file_.emplace(path);
}

void JsonlSink::write(const Record& record) {
  file_.value().append(format_json_row(record) + "\n");
}

void JsonlSink::close() { file_.reset(); }

REGISTER_SINK("jsonl", JsonlSink);

}  // namespace phalanx
