// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

namespace phalanx {
namespace {

using Words = std::vector<std::string>;

// More nodes than these have one line.
constexpr size_t kMostLines = 8;

constexpr std::string_view kNodeRank = "--node-rank";
constexpr std::string_view kRanks = "--nproc-per-node";
constexpr std::string_view kLocalAddress = "--local-addr";

bool is_flag(std::string_view word, std::string_view flag) {
  return word.substr(0, word.find('=')) == flag;
}

void replace(Words& words, std::string_view flag, int64_t value) {
  std::erase_if(words, [&](const std::string& word) { return is_flag(word, flag); });
  words.push_back(fmt::format("{}={}", flag, value));
}

// A word, as `auto`, means what the node has.
bool is_number_of_ranks(const Words& words) {
  const auto found = std::ranges::find_if(
      words, [](const std::string& word) { return is_flag(word, kRanks); });
  if (found == words.end()) return true;  // one
  const std::string_view value = std::string_view(*found).substr(found->find('=') + 1);
  return std::ranges::all_of(value, [](unsigned char c) { return std::isdigit(c) != 0; });
}

Words line_of_node(const AgentSettings& settings, int64_t ranks, int64_t node, int64_t own) {
  Words words = settings.line;
  if (node != own) {
    std::erase_if(words, [](const std::string& word) { return is_flag(word, kLocalAddress); });
  }
  if (ranks != settings.ranks && is_number_of_ranks(words)) replace(words, kRanks, ranks);
  if (settings.node_rank) replace(words, kNodeRank, node);
  return words;
}

bool names_server(const Words& words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word.find("is_host=") != std::string::npos; });
}

}  // namespace

std::vector<LaunchLine> lines_of_launch(const AgentSettings& settings,
                                        const std::vector<int64_t>& ranks_of_nodes, int64_t node) {
  if (settings.line.empty()) return {};
  // The first host's launch starts the others.
  if (settings.max_nodes == 1 || !settings.remote_nodes.empty()) {
    return {{.place = "", .words = settings.line}};
  }
  const bool are_alike = std::ranges::all_of(
      ranks_of_nodes, [&](int64_t ranks) { return ranks == ranks_of_nodes.front(); });
  if (!settings.node_rank && (are_alike || ranks_of_nodes.size() > kMostLines)) {
    return {{.place = names_server(settings.line) ? "each node, with its own is_host" : "each node",
             .words = settings.line}};
  }
  if (ranks_of_nodes.size() > kMostLines) {
    return {{.place = fmt::format("node {}, and on {} others with their own --node-rank", node,
                                  ranks_of_nodes.size() - 1),
             .words = line_of_node(settings, settings.ranks, node, node)}};
  }
  std::vector<LaunchLine> lines;
  for (size_t i = 0; i < ranks_of_nodes.size(); ++i) {
    const auto other = static_cast<int64_t>(i);
    lines.push_back({.place = fmt::format("node {}", other),
                     .words = line_of_node(settings, ranks_of_nodes[i], other, node)});
  }
  return lines;
}

std::vector<LaunchLine> lines_of_launch(const AgentSettings& settings) {
  const std::vector<int64_t> ranks(static_cast<size_t>(settings.max_nodes), settings.ranks);
  return lines_of_launch(settings, ranks, settings.node_rank.value_or(0));
}

}  // namespace phalanx
