// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/starts.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "trainer/base/cores.h"
#include "trainer/base/host.h"
#include "trainer/base/user_error.h"
#include "trainer/base/version.h"
#include "trainer/config/syntax/print.h"
#include "trainer/io/file.h"
#include "trainer/run/environment_report.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/version.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string utc_now() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

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

// What a line must begin with behind what is there: the end of one that a crash has torn.
std::string_view end_of_torn_line(const File& file) {
  const uint64_t size = file.size();
  if (size == 0) return "";
  std::array<std::byte, 1> last{};
  file.read(last, size - 1);
  return last.front() == std::byte{'\n'} ? "" : "\n";
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
  json["restart"] = start.restart;
  json["world_size"] = start.ranks.size();
  json["ranks"] = places(start.ranks);
  json["cpu"] = cpu_model();
  json["cores"] = usable_cores();
  json["versions"] = {{"phalanx", kVersion}, {"commit", commit()}, {"libtorch", TORCH_VERSION}};
  json["environment"] = start.environment;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_start(const fs::path& exp_dir, const std::string& line) {
  try {
    File file(exp_dir / kStartsFile, O_RDWR | O_CREAT | O_APPEND);
    file.append(fmt::format("{}{}\n", end_of_torn_line(file), line));
    file.sync();
    sync_folder(exp_dir);
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}; or choose another exp_dir", error.what()));
  }
}

}  // namespace phalanx
