// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/memory_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/host/memory_limit.h"
#include "trainer/memory/device_memory.h"
#include "trainer/parallel/device.h"
#include "trainer/plan/largest_tensor.h"
#include "trainer/ranks/collectives/hosts.h"

namespace phalanx {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

// In bytes; of sizes that nobody means, more than an integer counts.
struct Needs {
  double parameters = 0;
  double gradients = 0;
  double state = 0;
  double copies = 0;  // RunPlan::weight_copies
  double total() const { return parameters + gradients + state + copies; }
};

using PartsByName = std::map<std::string, HeldParts>;

// What a rank that holds these parts of its share has at the least, between two steps' ends.
Needs needs_of(const RunPlan& plan, ModelBase& model, const StatesOf& states, bool is_double,
               int64_t shards, const PartsByName& held) {
  Needs needs;
  for (const auto& parameter : named_parameters(model)) {
    const auto size = is_double && parameter.tensor.is_floating_point()
                          ? static_cast<int64_t>(sizeof(double))
                          : static_cast<int64_t>(parameter.tensor.element_size());
    const auto bytes = static_cast<double>(parameter.tensor.numel() * size / shards);
    const auto named = held.find(parameter.name);
    const HeldParts parts = named == held.end() ? HeldParts() : named->second;
    if (parts.values) needs.parameters += bytes;
    if (!parameter.tensor.requires_grad()) continue;
    if (parts.gradient) needs.gradients += bytes;
    if (!parts.state) continue;
    needs.state += static_cast<double>(states(parameter)) * bytes;
    needs.copies += static_cast<double>(plan.weight_copies) * bytes;
  }
  return needs;
}

// The mean over the ranks of a host: where they hold unlike parts, one may need more than an equal
// part of the memory that they share.
Needs mean_on_host(const Ranks& ranks, const std::function<Needs(int64_t rank)>& needs_on) {
  const auto hosts = hosts_of(ranks);
  const int64_t here = hosts[static_cast<std::size_t>(ranks.rank())];
  const auto count = static_cast<double>(std::ranges::count(hosts, here));
  Needs mean;
  for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
    if (hosts[static_cast<std::size_t>(rank)] != here) continue;
    const Needs needs = needs_on(rank);
    mean.parameters += needs.parameters / count;
    mean.gradients += needs.gradients / count;
    mean.state += needs.state / count;
    mean.copies += needs.copies / count;
  }
  return mean;
}

// What is shared by a host's ranks is divided by them as the model is: only hosts add to it.
std::string advice(const RunPlan& plan, const MemoryLimit& limit, const Ranks& ranks,
                   int64_t shards) {
  const char* const more = limit.is_shared ? "more hosts" : "more ranks";
  if (shards == ranks.world_size() && !ranks.is_single_rank()) {
    return fmt::format("Use {}, a smaller model, or an optimizer with less state", more);
  }
  if (!plan.has_fsdp) {
    return "Use a smaller model, an optimizer with less state, or name: supervised with strategy: "
           "fsdp, which divides all three by the number of ranks";
  }
  const bool spreads = !limit.is_shared || ranks.world_size() > ranks.local_world_size();
  if (shards == 1) {
    return fmt::format(
        "Use a smaller model, or shard this one: parallel.use_fsdp=true "
        "parallel.sharding_strategy=FULL_SHARD {}",
        ranks.is_single_rank()
            ? (limit.is_shared ? "on several hosts" : "on several ranks (launcher.processes)")
            : "divides all three by the number of ranks");
  }
  return fmt::format("Use FULL_SHARD, which shards over all ranks{}",
                     spreads ? fmt::format(", or {}", more) : std::string());
}

// The free memory of a GPU, for each of the `ranks` that compute on it: what other processes have
// taken is not counted on. None for a device that does not tell (device_memory).
std::optional<MemoryLimit> device_memory_limit(at::Device device, int64_t ranks) {
  const auto memory = device_memory(device);
  if (!memory) return std::nullopt;
  std::string source = "the free memory of " + device.str();
  if (ranks > 1) source += ", shared by " + std::to_string(ranks) + " ranks";
  return MemoryLimit{
      .bytes = memory->free / ranks, .source = std::move(source), .is_shared = ranks > 1};
}

// The limit of the memory in which parameters, gradients and state will lie.
std::optional<MemoryLimit> limit_of(const RunPlan& plan, const Ranks& ranks, at::Device device) {
  if (device.is_cpu() || plan.is_offloaded(ranks)) {
    return memory_limit(ranks.local_world_size());
  }
  const std::string mine = hardware_of(device);
  const auto all = ranks.all_gather(mine);
  return device_memory_limit(device, std::ranges::count(all, mine));
}

// Empty: it may fit.
std::string refusal(const RunPlan& plan, const Needs& needs,
                    const std::optional<MemoryLimit>& limit, const Ranks& ranks, int64_t shards,
                    const std::string& largest) {
  if (!limit || needs.total() <= static_cast<double>(limit->bytes)) return {};
  const bool are_alike = !plan.held_parts || ranks.is_single_rank();
  const auto mebibytes = [](double bytes) { return bytes / kMebibyte; };
  return fmt::format(
      "the model does not fit into memory: {} needs {:.0f} MiB before it computes anything "
      "(parameters {:.0f}, gradients {:.0f}, the optimizer's state {:.0f}{}), and may take {:.0f} "
      "MiB ({}); {}. {}",
      are_alike          ? std::string("each rank")
      : limit->is_shared ? std::string("the mean rank of a host")
                         : fmt::format("rank {}", ranks.rank()),
      mebibytes(needs.total()), mebibytes(needs.parameters), mebibytes(needs.gradients),
      mebibytes(needs.state),
      needs.copies > 0 ? fmt::format(", averages {:.0f}", mebibytes(needs.copies)) : "",
      mebibytes(static_cast<double>(std::max<int64_t>(limit->bytes, 0))), limit->source, largest,
      advice(plan, *limit, ranks, shards));
}

}  // namespace

void require_memory(const RunPlan& plan, ModelBase& model, const config::Node& section,
                    const StatesOf& states, bool is_double, const Ranks& ranks, at::Device device) {
  const int64_t shards = plan.shards(ranks);
  const bool are_unlike = plan.held_parts && !ranks.is_single_rank();
  const auto needs_on = [&](int64_t rank) {
    const auto held = are_unlike ? plan.held_parts(model, rank, ranks.world_size()) : PartsByName();
    return needs_of(plan, model, states, is_double, shards, held);
  };
  // All have looked before any takes memory from the others, and what one refuses all do.
  const auto limit = limit_of(plan, ranks, device);
  const bool has_mean = are_unlike && limit && limit->is_shared;
  const Needs needs = has_mean ? mean_on_host(ranks, needs_on) : needs_on(ranks.rank());
  const std::string mine =
      refusal(plan, needs, limit, ranks, shards, largest_tensor(model, section, is_double));
  for (const std::string& text : ranks.all_gather(mine)) {
    if (!text.empty()) throw UserError(text);
  }
}

}  // namespace phalanx
