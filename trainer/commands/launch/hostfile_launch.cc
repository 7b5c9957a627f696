// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/hostfile_launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/commands/launch/launch_flag.h"
#include "trainer/commands/launch/launch_options.h"
#include "trainer/host/listener.h"
#include "trainer/launch/agent/program.h"
#include "trainer/submission/hostfile.h"
#include "trainer/submission/shell_words.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

// What the file says, or what another way for nodes to meet needs.
constexpr std::array kNotBesideHostfile = {"--nnodes", "--node-rank", "--standalone",
                                           "--rdzv-backend", "--rdzv-endpoint"};

void refuse_other_places(const Invocation& invocation) {
  for (const char* flag : kNotBesideHostfile) {
    const auto other = given(invocation, flag);
    if (!other && !invocation.has(flag)) continue;
    throw UserError(
        fmt::format("{} stands beside --hostfile, which says how many nodes there are "
                    "and where they meet",
                    other ? other->name : flag));
  }
}

void refuse_other_slots(const Invocation& invocation, const std::vector<Host>& hosts) {
  const auto ranks = given(invocation, "--nproc-per-node");
  if (!ranks) return;
  for (const Host& host : hosts) {
    if (!host.slots || std::to_string(*host.slots) == ranks->value) continue;
    throw UserError(
        fmt::format("{}='{}', but the hostfile gives '{}' slots={}: leave out one of both",
                    ranks->name, ranks->value, host.name, *host.slots));
  }
}

bool is_of_hostfile(const std::string& flag) {
  const std::string_view name = std::string_view(flag).substr(0, flag.find('='));
  return name == kHostfileFlag || name == kSshFlag || name == kExportFlag;
}

// The flags of a node, as a user would give them there.
Invocation launch_of_node(const Invocation& invocation, const std::vector<Host>& hosts,
                          size_t node) {
  Invocation launch = invocation;
  std::erase_if(launch.flags, is_of_hostfile);
  const auto add = [&](const std::string& flag, const auto& value) {
    launch.flags.push_back(fmt::format("{}={}", flag, value));
  };
  if (hosts[node].slots) add("--nproc-per-node", *hosts[node].slots);
  if (hosts.size() == 1) return launch;
  add("--nnodes", hosts.size());
  add("--node-rank", node);
  if (!given(invocation, "--master-addr")) add("--master-addr", hosts.front().name);
  return launch;
}

// ---- What the other hosts are told

Words separated(const std::string& text, char separator) {
  std::istringstream rest(text);
  Words words;
  for (std::string word; std::getline(rest, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool goes_along(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"GLOO_", "NCCL_",    "OMP_",
                                                         "PET_",  "PHALANX_", "TORCH_"};
  constexpr std::array<std::string_view, 2> kNames = {"LD_LIBRARY_PATH", "LOGLEVEL"};
  const auto begins_with = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return name != "PET_HOSTFILE" && (std::ranges::any_of(kPrefixes, begins_with) ||
                                    std::ranges::find(kNames, name) != kNames.end());
}

// "NAME=VALUE" of each.
Words exported_variables(const Invocation& invocation) {
  Words variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (goes_along(variable.substr(0, variable.find('=')))) variables.emplace_back(variable);
  }
  std::ranges::sort(variables);
  const auto further = given(invocation, kExportFlag);
  if (!further) return variables;
  for (const std::string& name : separated(further->value, ',')) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) {
      throw UserError(fmt::format("{}: there is no variable '{}'", further->name, name));
    }
    variables.push_back(name + "=" + value);
  }
  return variables;
}

// For the shell of the other host.
std::string script_of(const Invocation& launch, const Words& variables) {
  Words words{"env"};
  words.insert(words.end(), variables.begin(), variables.end());
  words.insert(words.end(), {fs::read_symlink("/proc/self/exe").string(), "launch"});
  words.insert(words.end(), launch.flags.begin(), launch.flags.end());
  words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
  if (!launch.program.empty()) words.emplace_back("--");
  words.insert(words.end(), launch.program.begin(), launch.program.end());
  return shell_line({"cd", fs::current_path().string()}) + " && exec " + shell_line(words);
}

Words ssh_of(const Invocation& invocation) {
  const auto other = given(invocation, kSshFlag);
  const Words words = separated(other ? other->value : std::string(kDefaultSsh), ' ');
  if (words.empty()) throw UserError(other->name + " is empty");
  require_program(words.front());
  return words;
}

std::vector<RemoteNode> other_nodes(const Invocation& invocation, const std::vector<Host>& hosts,
                                    uint16_t port) {
  const Words ssh = ssh_of(invocation);
  const Words variables = exported_variables(invocation);
  std::vector<RemoteNode> nodes;
  for (size_t node = 1; node < hosts.size(); ++node) {
    Invocation launch = launch_of_node(invocation, hosts, node);
    launch.flags.push_back(fmt::format("--master-port={}", port));
    launch.flags.emplace_back(kRemoteNodeFlag);
    Words command = ssh;
    command.insert(command.end(), {hosts[node].name, script_of(launch, variables)});
    nodes.push_back({.host = hosts[node].name, .command = std::move(command)});
  }
  return nodes;
}

}  // namespace

AgentSettings hostfile_settings(const Invocation& invocation, const std::string& hostfile) {
  refuse_other_places(invocation);
  const std::vector<Host> hosts = read_hostfile(hostfile);
  refuse_other_slots(invocation, hosts);
  if (!is_this_host(hosts.front().name)) {
    throw UserError(fmt::format("{}: its first host, '{}', is not this one: start the launch there",
                                hostfile, hosts.front().name));
  }
  AgentSettings settings = agent_settings(launch_of_node(invocation, hosts, 0));
  if (hosts.size() > 1) settings.remote_nodes = other_nodes(invocation, hosts, settings.port);
  return settings;
}

}  // namespace phalanx
