// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/not_in_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx {
namespace {

struct Lacking {
  std::string_view path;
  std::string_view why;
};

constexpr std::string_view kSpread =
    "the trainer pipeline divides the model into stages, one a rank, and not by DDP or FSDP";
constexpr std::string_view kReplicas =
    "a rank of the trainer pipeline is one stage on one device, without replicas";
constexpr std::string_view kServers = "the trainer pipeline has no parameter servers";
constexpr std::string_view kBuffers =
    "buffers of a model stay as they are in the trainer pipeline, and batch normalization moves "
    "its "
    "own";
constexpr std::string_view kHost = "the ranks of the trainer pipeline compute on CPUs";

constexpr std::array kAll{Lacking{"strategy", kSpread},
                          Lacking{"parallel.use_fsdp", kSpread},
                          Lacking{"parallel.single_rank", kSpread},
                          Lacking{"parallel.cpu_offload", kSpread},
                          Lacking{"parallel.sharding_strategy", kSpread},
                          Lacking{"parallel.sync_module_states", kSpread},
                          Lacking{"parallel.ddp", kSpread},
                          Lacking{"parallel.fsdp", kSpread},
                          Lacking{"parallel.sync_batchnorm", kBuffers},
                          Lacking{"parallel.data_parallel", kReplicas},
                          Lacking{"parallel.device", kHost},
                          Lacking{"parallel.servers", kServers},
                          Lacking{"parallel.updates", kServers}};

// The entry of a dotted path that has a value; nullptr: there is none.
const config::Entry* entry_at(const config::Node& tree, std::string_view path) {
  const config::Node* section = &tree;
  const config::Entry* entry = nullptr;
  for (const std::string& key : config::split_path(path)) {
    const auto found = std::ranges::find(section->entries, key, &config::Entry::key);
    if (found == section->entries.end()) return nullptr;
    entry = &*found;
    section = &found->value;
  }
  return entry == nullptr || entry->value.is_null() ? nullptr : entry;
}

}  // namespace

void refuse_what_pipelines_lack(const config::Node& tree) {
  config::Diagnostics mistakes;
  for (const Lacking& lacking : kAll) {
    const config::Entry* const entry = entry_at(tree, lacking.path);
    if (entry == nullptr) continue;
    mistakes.add(entry->key_origin, std::string(lacking.path),
                 fmt::format("{}; leave it out, or choose name: supervised", lacking.why));
  }
  mistakes.throw_if_any();
}

}  // namespace phalanx
