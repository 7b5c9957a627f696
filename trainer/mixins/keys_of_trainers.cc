// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/keys_of_trainers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

/// What a trainer does instead, by Spreading: "the trainer NAME ..."; empty: it has the key.
using Reasons = std::array<std::string_view, 4>;

struct Key {
  std::string_view path;
  std::string_view owners;  ///< The trainers that have it.
  Reasons reasons;
};

constexpr std::string_view kSupervised = "supervised";
constexpr std::string_view kHasServers = "parameter_server or ddp_with_remote_embedding";

constexpr std::string_view kByServers =
    "spreads gradients and weights by its servers, and not by DDP or FSDP";
constexpr std::string_view kByTables =
    "has the last ranks hold the embeddings and the others train in DDP, with DDP's defaults";
constexpr std::string_view kByStages =
    "divides the model into stages, one a rank, and not by DDP or FSDP";
constexpr std::string_view kByReplicas = "spreads the work by DDP or FSDP, and has no servers";

constexpr Reasons kWay{"", kByServers, kByTables, kByStages};
constexpr std::string_view kFirst = "always begins with rank 0's weights and buffers on all ranks";
constexpr std::string_view kApart = "normalizes the batches of each rank by themselves";
constexpr std::string_view kOneDevice = "has one device a rank, without replicas";
constexpr std::string_view kHost = "computes on CPUs";
constexpr std::string_view kNoServers = "divides the model into stages, and has no servers";

constexpr std::array kKeys{
    Key{"strategy", kSupervised, kWay},
    Key{"parallel.name", kSupervised, kWay},
    Key{"parallel.preset", kSupervised, kWay},
    Key{"parallel.use_fsdp", kSupervised, kWay},
    Key{"parallel.single_rank", kSupervised, kWay},
    Key{"parallel.cpu_offload", kSupervised, kWay},
    Key{"parallel.sharding_strategy", kSupervised, kWay},
    Key{"parallel.ddp", kSupervised, kWay},
    Key{"parallel.fsdp", kSupervised, kWay},
    Key{"parallel.sync_module_states", kSupervised, {"", kFirst, kFirst, kFirst}},
    Key{"parallel.sync_batchnorm",
        kSupervised,
        {"", kApart, kApart, "leaves buffers as they are, and batch normalization moves its own"}},
    Key{"parallel.data_parallel", kSupervised, {"", kOneDevice, kOneDevice, kOneDevice}},
    Key{"parallel.device", kSupervised, {"", kHost, kHost, kHost}},
    Key{"parallel.servers", kHasServers, {kByReplicas, "", "", kNoServers}},
    Key{"parallel.updates",
        "parameter_server",
        {kByReplicas, "", "has each update wait for the gradients of all ranks", kNoServers}},
    Key{"parallel.tables",
        "ddp_with_remote_embedding",
        {kByReplicas, "deals all parameters to its servers, by size", "", kNoServers}},
    Key{"parallel.sparse_embeddings",
        "parameter_server",
        {kByReplicas, "", "brings and sends the rows of its embeddings alone", kNoServers}},
    Key{"lora",
        "supervised, parameter_server or pipeline",
        {"", "", "trains all weights, without adapters", ""}}};

/// The entry at a dotted path; nullptr: there is none.
const config::Entry* entry_at(const config::Node& tree, std::string_view path) {
  const config::Node* section = &tree;
  const config::Entry* entry = nullptr;
  for (const std::string& key : config::split_path(path)) {
    const auto found = std::ranges::find(section->entries, key, &config::Entry::key);
    if (found == section->entries.end()) return nullptr;
    entry = &*found;
    section = &found->value;
  }
  return entry;
}

/// How to take a key back that stands in a file.
std::string how_to_drop(const config::Entry& entry, std::string_view path) {
  const auto& source = entry.key_origin.source;
  const bool is_in_file = source && source->kind == config::Source::Kind::file;
  return is_in_file ? fmt::format(" (on the command line: ~{})", path) : std::string();
}

}  // namespace

void refuse_keys_of_others(const config::Node& tree, Spreading spreading) {
  config::Diagnostics mistakes;
  const config::Node* const trainer = tree.find("name");
  const auto refuse = [&](const config::Entry& entry, std::string_view path, const Key& key) {
    mistakes.add(entry.key_origin, std::string(path),
                 fmt::format("the trainer {} {}; leave it out{}, or choose name: {}",
                             trainer == nullptr ? "chosen here" : trainer->text,
                             key.reasons[static_cast<std::size_t>(spreading)],
                             how_to_drop(entry, path), key.owners));
  };
  for (const Key& key : kKeys) {
    if (key.reasons[static_cast<std::size_t>(spreading)].empty()) continue;
    const config::Entry* const entry = entry_at(tree, key.path);
    if (entry != nullptr) refuse(*entry, key.path, key);
  }
  // `parallel: fsdp` is short for the section's preset.
  const config::Entry* const parallel = entry_at(tree, "parallel");
  const bool is_short = parallel != nullptr && parallel->value.is_scalar() &&
                        (parallel->value.text == "ddp" || parallel->value.text == "fsdp");
  if (is_short && spreading != Spreading::data_parallel) {
    refuse(*parallel, "parallel", kKeys.front());
  }
  mistakes.throw_if_any();
}

}  // namespace phalanx
