// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/sharded_unit.h"

#include <algorithm>
#include <utility>

namespace phalanx::fsdp {
namespace {

bool same_flat(const NamedParameter& a, const NamedParameter& b) {
  return a.tensor.scalar_type() == b.tensor.scalar_type() &&
         a.tensor.requires_grad() == b.tensor.requires_grad();
}

std::vector<std::vector<NamedParameter>> by_flat(std::vector<NamedParameter> parameters) {
  std::vector<std::vector<NamedParameter>> flats;
  for (auto& parameter : parameters) {
    const auto home = std::find_if(flats.begin(), flats.end(), [&](const auto& flat) {
      return same_flat(flat.front(), parameter);
    });
    if (home == flats.end()) {
      flats.push_back({std::move(parameter)});
    } else {
      home->push_back(std::move(parameter));
    }
  }
  return flats;
}

}  // namespace

ShardedUnit::ShardedUnit(PlannedUnit planned, std::size_t number, const Groups& groups,
                         const std::shared_ptr<BufferPool>& pool, const FlatOptions& options)
    : name_(std::move(planned.name)), number_(number), unit_(planned.unit) {
  for (auto& parameters : by_flat(std::move(planned.parameters))) {
    flats_.push_back(std::make_unique<FlatParameter>(std::move(parameters), groups, pool, options));
  }
}

void ShardedUnit::start_gather() {
  for (const auto& flat : flats_) flat->start_gather();
}

void ShardedUnit::finish_gather() {
  start_gather();
  for (const auto& flat : flats_) flat->finish_gather();
}

bool ShardedUnit::is_gathered() const {
  return std::any_of(flats_.begin(), flats_.end(),
                     [](const auto& flat) { return flat->is_gathered(); });
}

void ShardedUnit::free_after_forward() {
  for (const auto& flat : flats_) flat->free_after_forward();
}

void ShardedUnit::free() {
  for (const auto& flat : flats_) flat->free();
}

void ShardedUnit::start_reduce() {
  needs_reduction = false;
  for (const auto& flat : flats_) {
    if (flat->requires_grad()) flat->start_reduce();
  }
}

void ShardedUnit::finish_reduce() {
  for (const auto& flat : flats_) {
    if (flat->is_reducing()) flat->finish_reduce();
  }
}

void ShardedUnit::start_average() {
  is_averaged = true;
  for (const auto& flat : flats_) {
    if (flat->requires_grad()) flat->start_average();
  }
}

void ShardedUnit::finish_average() {
  for (const auto& flat : flats_) {
    if (flat->is_averaging()) flat->finish_average();
  }
}

void ShardedUnit::reset() {
  open_calls = 0;
  was_called = needs_reduction = is_averaged = false;
  for (const auto& flat : flats_) flat->reset();
}

}  // namespace phalanx::fsdp
