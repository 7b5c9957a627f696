// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/launch_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/base/version.h"
#include "trainer/commands/launch/launch_flag.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/host/gpus.h"
#include "trainer/host/host.h"
#include "trainer/ranks/collectives/agreement.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

using Server = AgentSettings::Server;
using Milliseconds = AgentSettings::Milliseconds;

constexpr int64_t kMostNodes = 1 << 16;
constexpr int64_t kMostRestarts = 1 << 20;
constexpr int64_t kHighestPort = 65'535;
constexpr uint16_t kStaticPort = 29'500;
constexpr uint16_t kC10dPort = 29'400;
constexpr double kLongest = 1e7;  // seconds

[[noreturn]] void refuse(const Given& given, const std::string& why) {
  throw UserError(fmt::format("{}='{}': {}", given.name, given.value, why));
}

int64_t whole_number(const Given& given, std::string_view text, int64_t low, int64_t high) {
  const auto number = config::parse_integer(text).value;
  if (number && *number >= low && *number <= high) return *number;
  refuse(given, fmt::format("not a whole number from {} to {}", low, high));
}

int64_t whole_number(const Given& given, int64_t low, int64_t high) {
  return whole_number(given, given.value, low, high);
}

Milliseconds duration(const Given& given, std::string_view text) {
  const auto seconds = config::parse_real(text).value;
  if (!seconds || !(*seconds >= 0.001 && *seconds <= kLongest)) {
    refuse(given, fmt::format("'{}' is not a number of seconds from 0.001 on", text));
  }
  return std::chrono::duration_cast<Milliseconds>(std::chrono::duration<double>(*seconds));
}

bool truth(const Given& given, std::string_view text) {
  constexpr std::array kYes = {"1", "true", "True", "yes"};
  constexpr std::array kNo = {"0", "false", "False", "no"};
  if (std::ranges::find(kYes, text) != kYes.end()) return true;
  if (std::ranges::find(kNo, text) != kNo.end()) return false;
  refuse(given, fmt::format("'{}' is neither true nor false", text));
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// ---- Ranks and nodes

int64_t ranks_of_node(const Given& given) {
  if (given.value == "cpu") return usable_cores();
  const int64_t gpus = usable_gpus();
  if (given.value == "auto") return gpus > 0 ? gpus : usable_cores();
  if (given.value != "gpu") {
    const auto number = config::parse_integer(given.value).value;
    if (number && *number >= 1 && *number <= kMostRanksOfNode) return *number;
    refuse(given, fmt::format("write a number from 1 to {}, auto, cpu or gpu", kMostRanksOfNode));
  }
  if (gpus > 0) return gpus;
  refuse(given, "this host has no NVIDIA GPU; auto takes its cores instead");
}

// "4", or "2:4" for two to four.
void read_nodes(const Given& given, AgentSettings& settings) {
  const auto bounds = parts_of(given.value, ':');
  if (bounds.size() > 2) refuse(given, "write a number of nodes, or the fewest and the most: 2:4");
  settings.min_nodes = whole_number(given, bounds.front(), 1, kMostNodes);
  settings.max_nodes = whole_number(given, bounds.back(), settings.min_nodes, kMostNodes);
}

NumaBinding numa_binding(const Given& given) {
  std::vector<std::string> names;
  for (const auto& [name, binding] : kNumaBindings) {
    if (given.value == name) return binding;
    names.emplace_back(name);
  }
  throw UserError(unknown_name("value of " + given.name, given.value, names));
}

// ---- Where the agents meet

void read_port(const Given& given, std::string_view text, AgentSettings& settings) {
  settings.port = static_cast<uint16_t>(whole_number(given, text, 0, kHighestPort));
  if (settings.port == 0 && settings.max_nodes > 1) {
    refuse(given, "port 0, a free one, is for one node: the others have to know it");
  }
}

// "host", "host:29400", "[fe80::1]:29400"
void read_endpoint(const Given& given, AgentSettings& settings) {
  std::string_view rest = given.value;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse(given, "its `[` is not closed");
    settings.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    settings.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(settings.host.size());
  }
  const bool is_whole = rest.empty() || rest.starts_with(':');
  if (settings.host.empty() || !is_whole) refuse(given, "write HOST, HOST:PORT or [IPv6]:PORT");
  if (!rest.empty()) read_port(given, rest.substr(1), settings);
}

// The backend's own settings, as torchrun calls them.
void read_backend_options(const Given& given, AgentSettings& settings) {
  Milliseconds interval{5'000};
  int64_t attempts = 3;
  const std::map<std::string, std::function<void(std::string_view)>, std::less<>> options{
      {"join_timeout",
       [&](std::string_view text) { settings.join_timeout = duration(given, text); }},
      {"timeout", [&](std::string_view text) { settings.join_timeout = duration(given, text); }},
      {"last_call_timeout",
       [&](std::string_view text) { settings.last_call_timeout = duration(given, text); }},
      {"close_timeout",
       [&](std::string_view text) { settings.close_timeout = duration(given, text); }},
      {"keep_alive_interval", [&](std::string_view text) { interval = duration(given, text); }},
      {"keep_alive_max_attempt",
       [&](std::string_view text) { attempts = whole_number(given, text, 1, 1000); }},
      {"is_host",
       [&](std::string_view text) {
         settings.server = truth(given, text) ? Server::here : Server::elsewhere;
       }},
  };
  for (const std::string_view option : parts_of(given.value, ',')) {
    const auto words = parts_of(option, '=');
    const auto found = options.find(words.front());
    if (found == options.end()) {
      std::vector<std::string> names;
      for (const auto& [name, read] : options) names.push_back(name);
      throw UserError(unknown_name("option of " + given.name, std::string(words.front()), names));
    }
    if (words.size() != 2) refuse(given, fmt::format("write {}=VALUE", found->first));
    found->second(words.back());
  }
  const Milliseconds longest(static_cast<int64_t>(kLongest) * 1000);
  settings.keep_alive_timeout = std::min<Milliseconds>(interval * attempts, longest);
}

std::string random_id() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

[[noreturn]] void refuse_missing(std::string_view flag, std::string_view meaning) {
  throw UserError(fmt::format("option {} is missing: {}", flag, meaning));
}

/// Reads what of the flags depends on each other: where the agents meet, and which one serves.
class Endpoint {
 public:
  Endpoint(const Invocation& invocation, AgentSettings& settings)
      : invocation_(invocation),
        settings_(settings),
        endpoint_(given(invocation, "--rdzv-endpoint")) {}

  void read() {
    if (const auto id = given(invocation_, "--rdzv-id")) settings_.run_id = id->value;
    if (const auto rank = given(invocation_, "--node-rank")) {
      settings_.node_rank = whole_number(*rank, 0, settings_.max_nodes - 1);
    }
    if (is_standalone()) {
      read_standalone();
    } else if (backend() == "static") {
      read_static();
    } else {
      read_c10d();
    }
    if (const auto options = given(invocation_, "--rdzv-conf")) {
      read_backend_options(*options, settings_);
    }
  }

 private:
  bool is_standalone() const {
    if (invocation_.has("--standalone")) return true;
    const auto variable = given(invocation_, "--standalone");
    return variable && truth(*variable, variable->value);
  }

  std::string backend() const {
    const auto named = given(invocation_, "--rdzv-backend");
    if (!named) return "static";
    const std::vector<std::string> known{"static", "c10d"};
    if (std::ranges::find(known, named->value) != known.end()) return named->value;
    throw UserError(unknown_name("value of " + named->name, named->value, known));
  }

  // One node that no other launch of this host can meet.
  void read_standalone() {
    if (settings_.max_nodes > 1) {
      throw UserError("--standalone is for one node: leave out --nnodes, or name the endpoint");
    }
    settings_.run_id = random_id();
  }

  void read_static() {
    if (settings_.min_nodes != settings_.max_nodes) {
      throw UserError(
          "--nnodes is a range, which --rdzv-backend=c10d can have; static takes one number");
    }
    const auto address = given(invocation_, "--master-addr");
    const auto port = given(invocation_, "--master-port");
    if (settings_.max_nodes > 1) {
      if (!address && !endpoint_) refuse_missing("--master-addr", "where node 0 is");
      if (!settings_.node_rank) refuse_missing("--node-rank", "which of the nodes this is, from 0");
      settings_.port = kStaticPort;
    }
    if (address) settings_.host = address->value;
    if (port) read_port(*port, port->value, settings_);
    if (endpoint_) read_endpoint(*endpoint_, settings_);
    settings_.node_rank = settings_.node_rank.value_or(0);
    settings_.server = settings_.node_rank == 0 ? Server::here : Server::elsewhere;
  }

  void read_c10d() {
    if (settings_.max_nodes > 1) {
      if (!endpoint_) refuse_missing("--rdzv-endpoint", "HOST:PORT of one of the nodes");
      settings_.port = kC10dPort;
    }
    if (endpoint_) read_endpoint(*endpoint_, settings_);
  }

  const Invocation& invocation_;
  AgentSettings& settings_;
  std::optional<Given> endpoint_;
};

// ---- Logs

LogSettings log_settings(const Invocation& invocation, int64_t ranks) {
  LogSettings logs;
  if (const auto folder = given(invocation, "--log-dir")) logs.folder = folder->value;
  if (const auto streams = given(invocation, "--redirects")) {
    logs.to_files = ChosenStreams(streams->name, streams->value);
  }
  if (const auto streams = given(invocation, "--tee")) {
    logs.to_both = ChosenStreams(streams->name, streams->value);
  }
  if (const auto shown = given(invocation, "--local-ranks-filter")) {
    for (const std::string_view rank : parts_of(shown->value, ',')) {
      logs.shown_ranks.insert(whole_number(*shown, rank, 0, ranks - 1));
    }
  }
  return logs;
}

}  // namespace

AgentSettings agent_settings(const Invocation& invocation) {
  for (const std::string_view flag : {kSshFlag, kExportFlag}) {
    if (invocation.value(flag)) throw UserError(std::string(flag) + " is for --hostfile");
  }
  AgentSettings settings{.node_name = host_name(),
                         .version = fmt::format("{}, {}", kVersion, describe_program())};
  if (const auto ranks = given(invocation, "--nproc-per-node")) {
    settings.ranks = ranks_of_node(*ranks);
  }
  if (const auto nodes = given(invocation, "--nnodes")) read_nodes(*nodes, settings);
  Endpoint(invocation, settings).read();
  if (const auto address = given(invocation, "--local-addr")) {
    settings.local_address = address->value;
  }
  if (const auto restarts = given(invocation, "--max-restarts")) {
    settings.max_restarts = whole_number(*restarts, 0, kMostRestarts);
  }
  if (const auto interval = given(invocation, "--monitor-interval")) {
    settings.monitor_interval = duration(*interval, interval->value);
  }
  if (const auto binding = given(invocation, kNumaBindingFlag)) {
    settings.numa_binding = numa_binding(*binding);
  }
  if (const auto role = given(invocation, "--role")) settings.role = role->value;
  settings.logs = log_settings(invocation, settings.ranks);
  settings.is_remote_node = invocation.has(kRemoteNodeFlag);
  return settings;
}

std::vector<Flag> agent_flags() {
  using Takes = Flag::Takes;
  return {
      {.name = "--nproc-per-node",
       .summary = "ranks of this node: a number, auto (one a GPU, else one a core), cpu or gpu; "
                  "default: 1",
       .takes = Takes::text},
      {.name = "--nnodes",
       .summary = "nodes: a number, or the fewest and the most, 2:4; default: 1",
       .takes = Takes::text},
      {.name = "--node-rank", .summary = "which node this is, from 0", .takes = Takes::text},
      {.name = "--master-addr",
       .summary = "name or address of node 0; default: 127.0.0.1",
       .takes = Takes::text},
      {.name = "--master-port",
       .summary = "port of node 0; default: 29500, for one node a free one",
       .takes = Takes::text},
      {.name = "--standalone", .summary = "one node, which no other launch can meet"},
      {.name = "--rdzv-backend",
       .summary = "static (node ranks and --master-addr are given) or c10d (nodes as they come, "
                  "at --rdzv-endpoint); default: static",
       .takes = Takes::text},
      {.name = "--rdzv-endpoint",
       .summary = "HOST[:PORT] of one of the nodes; default port: 29400 for c10d, 29500 for static",
       .takes = Takes::text},
      {.name = "--rdzv-id",
       .summary = "the run's name, the same on all nodes; default: none",
       .takes = Takes::text},
      {.name = "--rdzv-conf",
       .summary = "key=value,...: join_timeout, last_call_timeout, close_timeout, "
                  "keep_alive_interval (seconds), keep_alive_max_attempt, is_host",
       .takes = Takes::text},
      {.name = "--max-restarts",
       .summary = "how often all ranks are started again after a failure; default: 0",
       .takes = Takes::text},
      {.name = "--monitor-interval",
       .summary = "seconds between two looks at the other nodes; default: 0.1",
       .takes = Takes::text},
      {.name = "--log-dir",
       .summary = "where ranks' logs go; default: a temporary folder",
       .takes = Takes::path},
      {.name = "--redirects",
       .summary = "what goes into logs: 1 stdout, 2 stderr, 3 both, or 0:3,1:2 for some local "
                  "ranks",
       .takes = Takes::text,
       .letter = "-r"},
      {.name = "--tee",
       .summary = "what goes into logs and onto the console",
       .takes = Takes::text,
       .letter = "-t"},
      {.name = "--local-ranks-filter",
       .summary = "local ranks that the console shows: 0,1; default: all",
       .takes = Takes::text},
      {.name = "--local-addr",
       .summary = "address at which this node serves the others, if it does",
       .takes = Takes::text},
      {.name = "--role",
       .summary = "ROLE_NAME of the ranks; default: default",
       .takes = Takes::text},
      {.name = kNumaBindingFlag,
       .summary = "cores that a rank is bound to: auto, none, node, socket, exclusive or "
                  "core-complex; default: the config's parallel.numa_binding, for a program none",
       .takes = Takes::text},
      {.name = kHostfileFlag,
       .summary = "file of hosts, `node0 slots=4` a line, the first of them this one: starts the "
                  "same launch on the others",
       .takes = Takes::path},
      {.name = kSshFlag,
       .summary = "with --hostfile: what runs a command on a host: `ssh -p 2222`; default: ssh "
                  "that asks for no password, with timeouts",
       .takes = Takes::text},
      {.name = kExportFlag,
       .summary = "with --hostfile: further variables that the other hosts get: NAME,...",
       .takes = Takes::text},
      {.name = kRemoteNodeFlag,
       .summary = "what --hostfile gives to the launches on other hosts: end with standard input, "
                  "and leave it to the first host to tell how the run ends"},
  };
}

}  // namespace phalanx
