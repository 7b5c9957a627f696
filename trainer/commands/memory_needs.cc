#include "trainer/commands/memory_needs.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "trainer/config/schema.h"
#include "trainer/config/user_error.h"
#include "trainer/core/parameters.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"
#include "trainer/parallel/parallel_config.h"

namespace phalanx {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

// A line such as "VmData:   1234 kB" of a file of the kernel's, in bytes.
std::optional<int64_t> kibibytes(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    int64_t value = 0;
    if (word == name + ":" && file >> value) return value * 1024;
  }
  return std::nullopt;
}

std::optional<int64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // there is none, or it is "max"
}

std::optional<MemoryLimit> own_limit(decltype(RLIMIT_DATA) resource, const char* used,
                                     const char* name) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const int64_t taken = kibibytes("/proc/self/status", used).value_or(0);
  return MemoryLimit{.bytes = static_cast<int64_t>(limit.rlim_cur) - taken, .source = name};
}

// This process's group in the second version's tree, and those around it.
std::optional<MemoryLimit> cgroup_limit(int64_t local_world_size) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("0::/")) {
  }
  if (!line.starts_with("0::/")) return std::nullopt;
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::optional<MemoryLimit> tightest;
  for (std::filesystem::path group = root / line.substr(4);; group = group.parent_path()) {
    const auto most = number_in(group / "memory.max");
    const auto now = number_in(group / "memory.current");
    if (most && now) {
      const int64_t share = (*most - *now) / local_world_size;
      if (!tightest || share < tightest->bytes) {
        tightest = MemoryLimit{
            .bytes = share, .source = "the memory cgroup, shared by the ranks", .is_shared = true};
      }
    }
    if (group == root || !group.has_relative_path()) return tightest;
  }
}

std::optional<MemoryLimit> host_limit(int64_t local_world_size) {
  const auto available = kibibytes("/proc/meminfo", "MemAvailable");
  if (!available) return std::nullopt;
  return MemoryLimit{.bytes = *available / local_world_size,
                     .source = "the host's free memory, shared by the ranks",
                     .is_shared = true};
}

struct Needs {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t state = 0;
  int64_t total() const { return parameters + gradients + state; }
};

// What a rank holds at the least, between two steps' ends.
Needs needs_of(ModelBase& model, const Optimizer& optimizer, bool is_double, int64_t shards) {
  Needs needs;
  for (const auto& parameter : named_parameters(model)) {
    const auto size = is_double && parameter.tensor.is_floating_point()
                          ? static_cast<int64_t>(sizeof(double))
                          : static_cast<int64_t>(parameter.tensor.element_size());
    const int64_t bytes = parameter.tensor.numel() * size / shards;
    needs.parameters += bytes;
    if (!parameter.tensor.requires_grad()) continue;
    needs.gradients += bytes;
    needs.state += optimizer.states_per_element() * bytes;
  }
  return needs;
}

int64_t shards_of(const ParallelConfig& config, const Ranks& ranks) {
  if (ranks.is_alone() || !config.use_fsdp) return 1;
  return mesh_of(config.sharding_strategy, config.fsdp, ranks.rank(), ranks.world_size(),
                 ranks.local_world_size())
      .shards;
}

// What is shared by a host's ranks is divided by them as the model is: only hosts add to it.
std::string advice(const MemoryLimit& limit, const Ranks& ranks, int64_t shards) {
  const char* const more = limit.is_shared ? "more hosts" : "more ranks";
  if (shards == ranks.world_size() && !ranks.is_alone()) {
    return fmt::format("use {}, a smaller model, or an optimizer with less state", more);
  }
  const bool spreads = !limit.is_shared || ranks.world_size() > ranks.local_world_size();
  if (shards == 1) {
    return fmt::format(
        "shard the model: parallel.use_fsdp=true parallel.sharding_strategy=FULL_SHARD {}",
        ranks.is_alone()
            ? (limit.is_shared ? "on several hosts" : "on several ranks (launcher.processes)")
            : "divides all three by the ranks");
  }
  return fmt::format("use FULL_SHARD, which shards over all ranks{}",
                     spreads ? fmt::format(", or {}", more) : std::string());
}

}  // namespace

std::optional<MemoryLimit> memory_limit(int64_t local_world_size) {
  std::optional<MemoryLimit> tightest;
  for (const auto& limit : {own_limit(RLIMIT_DATA, "VmData", "RLIMIT_DATA (ulimit -d)"),
                            own_limit(RLIMIT_AS, "VmSize", "RLIMIT_AS (ulimit -v)"),
                            cgroup_limit(local_world_size), host_limit(local_world_size)}) {
    if (limit && (!tightest || limit->bytes < tightest->bytes)) tightest = limit;
  }
  return tightest;
}

void require_memory(const config::Node& resolved, ModelBase& model, const Optimizer& optimizer,
                    const World& world) {
  if (!world.device().is_cpu()) return;
  const Ranks& ranks = world.ranks();
  const auto limit = memory_limit(ranks.local_world_size());
  if (!limit) return;
  const config::Node* section = resolved.find("parallel");
  const auto config =
      section == nullptr ? ParallelConfig() : config::read<ParallelConfig>(*section);
  const int64_t shards = shards_of(config, ranks);
  const bool is_double = resolved.find("use_double_weight_precision")->text == "true";
  const Needs needs = needs_of(model, optimizer, is_double, shards);
  if (needs.total() <= limit->bytes) return;
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / kMebibyte; };
  throw UserError(fmt::format(
      "the model does not fit: on each rank parameters take {:.0f} MiB, their gradients {:.0f}, "
      "the optimizer's state {:.0f}, together {:.0f} MiB without activations, and there are {:.0f} "
      "MiB "
      "({}). To train it, {}",
      mebibytes(needs.parameters), mebibytes(needs.gradients), mebibytes(needs.state),
      mebibytes(needs.total()), mebibytes(std::max<int64_t>(limit->bytes, 0)), limit->source,
      advice(*limit, ranks, shards)));
}

}  // namespace phalanx
