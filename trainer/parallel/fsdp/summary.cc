// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/summary.h"

#include <fmt/format.h>

namespace phalanx::fsdp {
namespace {

std::string mebibytes(int64_t bytes) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / kMebibyte);
}

bool same_size(const ShardedUnitSummary& a, const ShardedUnitSummary& b) {
  return a.whole_bytes == b.whole_bytes && a.resident_bytes == b.resident_bytes &&
         a.name.empty() == b.name.empty();
}

}  // namespace

std::string describe(ShardingStrategy strategy, const Mesh& mesh) {
  return mesh.replicas == 1 ? fmt::format("{} over {} ranks", to_string(strategy), mesh.shards)
                            : fmt::format("{} over {} x {} ranks", to_string(strategy),
                                          mesh.replicas, mesh.shards);
}

std::vector<std::string> describe(const std::vector<ShardedUnitSummary>& units) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < units.size();) {
    std::size_t same = 1;
    while (i + same < units.size() && same_size(units[i], units[i + same])) ++same;
    lines.push_back(fmt::format("{}{}: {} of parameters whole, {} kept",
                                units[i].name.empty() ? "outside of units" : units[i].name,
                                same > 1 ? fmt::format(" and {} more", same - 1) : "",
                                mebibytes(units[i].whole_bytes),
                                mebibytes(units[i].resident_bytes)));
    i += same;
  }
  return lines;
}

}  // namespace phalanx::fsdp
