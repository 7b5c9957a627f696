// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/memory_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/host/memory_limit.h"
#include "trainer/memory/device_memory.h"
#include "trainer/parallel/device.h"
#include "trainer/plan/largest_tensor.h"

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

// What a rank holds at the least, between two steps' ends.
Needs needs_of(const RunPlan& plan, ModelBase& model, const StatesOf& states, bool is_double,
               int64_t shards) {
  Needs needs;
  for (const auto& parameter : named_parameters(model)) {
    const auto size = is_double && parameter.tensor.is_floating_point()
                          ? static_cast<int64_t>(sizeof(double))
                          : static_cast<int64_t>(parameter.tensor.element_size());
    const auto bytes = static_cast<double>(parameter.tensor.numel() * size / shards);
    needs.parameters += bytes;
    if (!parameter.tensor.requires_grad()) continue;
    needs.gradients += bytes;
    needs.state += static_cast<double>(states(parameter)) * bytes;
    needs.copies += static_cast<double>(plan.weight_copies) * bytes;
  }
  return needs;
}

// What is shared by a host's ranks is divided by them as the model is: only hosts add to it.
std::string advice(const MemoryLimit& limit, const Ranks& ranks, int64_t shards) {
  const char* const more = limit.is_shared ? "more hosts" : "more ranks";
  if (shards == ranks.world_size() && !ranks.is_single_rank()) {
    return fmt::format("Use {}, a smaller model, or an optimizer with less state", more);
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
std::string refusal(const Needs& needs, const std::optional<MemoryLimit>& limit, const Ranks& ranks,
                    int64_t shards, const std::string& largest) {
  if (!limit || needs.total() <= static_cast<double>(limit->bytes)) return {};
  const auto mebibytes = [](double bytes) { return bytes / kMebibyte; };
  return fmt::format(
      "the model does not fit into memory: each rank needs {:.0f} MiB before it computes anything "
      "(parameters {:.0f}, gradients {:.0f}, the optimizer's state {:.0f}{}), and may take {:.0f} "
      "MiB "
      "({}); {}. {}",
      mebibytes(needs.total()), mebibytes(needs.parameters), mebibytes(needs.gradients),
      mebibytes(needs.state),
      needs.copies > 0 ? fmt::format(", averages {:.0f}", mebibytes(needs.copies)) : "",
      mebibytes(static_cast<double>(std::max<int64_t>(limit->bytes, 0))), limit->source, largest,
      advice(*limit, ranks, shards));
}

}  // namespace

void require_memory(const RunPlan& plan, ModelBase& model, const config::Node& section,
                    const StatesOf& states, bool is_double, const Ranks& ranks, at::Device device) {
  const int64_t shards = plan.shards(ranks);
  const Needs needs = needs_of(plan, model, states, is_double, shards);
  // All have looked before any takes memory from the others, and what one refuses all do.
  const auto limit = limit_of(plan, ranks, device);
  const std::string mine =
      refusal(needs, limit, ranks, shards, largest_tensor(model, section, is_double));
  for (const std::string& text : ranks.all_gather(mine)) {
    if (!text.empty()) throw UserError(text);
  }
}

}  // namespace phalanx
