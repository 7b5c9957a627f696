// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/starts.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "trainer/base/user_error.h"
#include "trainer/base/version.h"
#include "trainer/config/syntax/print.h"
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

}  // namespace phalanx
