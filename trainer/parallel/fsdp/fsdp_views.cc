// SPDX-License-Identifier: Apache-2.0
// What an engine says of itself.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/parallel/fsdp/fsdp_impl.h"

namespace phalanx {

NamedParameter FullyShardedDataParallel::local(const NamedParameter& parameter) const {
  NamedParameter part = impl_->locals.at(parameter.tensor.unsafeGetTensorImpl());
  part.is_embedding_or_head = parameter.is_embedding_or_head;
  return part;
}

std::vector<NamedParameter> FullyShardedDataParallel::local_parameters() const {
  return impl_->local_parameters;
}

std::optional<at::ScalarType> FullyShardedDataParallel::input_dtype() const {
  return impl_->input_dtype;
}

std::vector<MemoryUse> FullyShardedDataParallel::memory() const {
  MemoryUse shards{.what = "parameters, this rank's part", .bytes = 0};
  MemoryUse gradients{.what = "gradients, this rank's part", .bytes = 0};
  std::vector<MemoryUse> whole;
  for (const auto& unit : impl_->units) {
    const std::string name = unit->name().empty() ? "what is outside of units" : unit->name();
    for (const auto& flat : unit->flats()) {
      const fsdp::FlatMemory memory = flat->memory();
      shards.bytes += memory.shard;
      gradients.bytes += memory.shard_gradients;
      if (memory.whole > 0) whole.push_back({"parameters, gathered: " + name, memory.whole});
      if (memory.gradients > 0) {
        whole.push_back({"gradients, not reduced: " + name, memory.gradients});
      }
    }
  }
  std::vector<MemoryUse> uses{shards, gradients};
  uses.insert(uses.end(), whole.begin(), whole.end());
  uses.push_back({"kept for the next unit", static_cast<int64_t>(impl_->pool->idle_bytes())});
  return uses;
}

std::vector<ShardedUnitSummary> FullyShardedDataParallel::summary() const {
  std::vector<ShardedUnitSummary> units;
  for (const auto& unit : impl_->units) {
    ShardedUnitSummary summary{
        .name = unit->name(), .parameters = 0, .whole_bytes = 0, .resident_bytes = 0};
    for (const auto& flat : unit->flats()) {
      for (const auto& parameter : flat->parameters()) {
        summary.parameters += parameter.tensor.numel();
      }
      summary.whole_bytes += flat->layout().size() * flat->compute_size();
      summary.resident_bytes += flat->layout().shard_size() * flat->storage_size();
    }
    units.push_back(std::move(summary));
  }
  return units;
}

std::vector<std::string> FullyShardedDataParallel::description() const {
  std::vector<std::string> lines{fsdp::describe(impl_->strategy, impl_->groups.mesh)};
  if (const int64_t ranks = impl_->after.kept_by; ranks > 1) {
    lines.push_back(fmt::format("{} ranks keep a unit whole until its backward pass", ranks));
  }
  if (impl_->compute) {
    lines.push_back(fmt::format("computes in {}, reduces in {}", c10::toString(*impl_->compute),
                                c10::toString(impl_->reduce.value_or(*impl_->compute))));
  }
  std::ranges::move(fsdp::describe(summary()), std::back_inserter(lines));
  return lines;
}

}  // namespace phalanx
