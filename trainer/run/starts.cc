// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/starts.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "trainer/base/user_error.h"
#include "trainer/base/version.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/host/host.h"
#include "trainer/io/file.h"
#include "trainer/run/environment_report.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/version.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json places(const std::vector<RankPlace>& ranks) {
  Json list = Json::array();
  for (const RankPlace& rank : ranks)
    list.push_back({{"host", rank.host}, {"device", rank.device}});
  return list;
}

Json changes(const std::vector<ConfigChange>& changed) {
  Json list = Json::array();
  for (const ConfigChange& change : changed) {
    Json object{{"field", change.path}};
    if (change.before) object["before"] = Json::parse(config::to_json(*change.before));
    if (change.after) {
      object["after"] = Json::parse(config::to_json(*change.after));
      object["written"] = change.after->origin.text();
    }
    list.push_back(std::move(object));
  }
  return list;
}

// A scalar of a line; empty without it.
std::string text_of(const config::Node& line, std::string_view key) {
  const config::Node* const value = line.find(key);
  return value == nullptr ? std::string() : value->text;
}

std::optional<int64_t> integer_of(const config::Node& line, std::string_view key) {
  return config::parse_integer(text_of(line, key)).value;
}

// Lines without "job_restarts" are older: "restart" was the job's, if it had no launcher of its
// own.
BatchJob job_of(const config::Node& line) {
  const int64_t restart = integer_of(line, "restart").value_or(0);
  return {.name = text_of(line, "job"),
          .restarts = integer_of(line, "job_restarts").value_or(restart)};
}

std::vector<ToldChange> changes_of(const config::Node& line) {
  const config::Node* const changed = line.find("changed");
  if (changed == nullptr) return {};
  std::vector<ToldChange> told;
  for (const config::Node& change : changed->items) {
    const config::Node* const after = change.find("after");
    told.push_back({.path = text_of(change, "field"),
                    .after = after == nullptr ? std::nullopt : std::optional(*after)});
  }
  return told;
}

PastStart past_start(const std::string& text) {
  try {
    const config::Node line = config::parse_json(text, std::string(kStartsFile));
    return {.time = text_of(line, "time"),
            .pid = text_of(line, "pid"),
            .host = text_of(line, "host"),
            .step = integer_of(line, "step"),
            .job = job_of(line),
            .changed = changes_of(line)};
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

std::string format_start(const Start& start) {
  Json json;
  json["time"] = utc_now();
  json["command"] = command_line();
  json["folder"] = fs::current_path().string();
  json["step"] = start.step;
  json["changed"] = changes(start.changed);
  json["host"] = host_name();
  json["pid"] = ::getpid();
  json["launcher"] = start.launcher;
  if (!start.job.name.empty()) {
    json["job"] = start.job.name;
    json["job_restarts"] = start.job.restarts;
  }
  json["restart"] = start.restart;
  json["world_size"] = start.ranks.size();
  json["ranks"] = places(start.ranks);
  json["cpu"] = cpu_model();
  json["cores"] = usable_cores();
  json["versions"] = {{"phalanx", kVersion}, {"commit", commit()}, {"libtorch", TORCH_VERSION}};
  json["environment"] = start.environment;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t append_start(const fs::path& exp_dir, const std::string& line) {
  try {
    return append_line(exp_dir / kStartsFile, line);
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}; or choose another exp_dir", error.what()));
  }
}

std::vector<PastStart> past_starts(const fs::path& exp_dir) {
  std::vector<PastStart> starts;
  for (const std::string& line : lines_of(exp_dir / kStartsFile)) {
    starts.push_back(past_start(line));
  }
  return starts;
}

}  // namespace phalanx
