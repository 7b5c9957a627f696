// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/initial_values.h"

#include <utility>

#include "trainer/parallel/deferred_values.h"

namespace phalanx::fsdp {

InitialValues::InitialValues(const std::vector<PlannedUnit>& planned,
                             std::shared_ptr<DeferredInit> deferred)
    : deferred_(std::move(deferred)) {
  for (const PlannedUnit& unit : planned) {
    for (const NamedParameter& parameter : unit.parameters) {
      const auto* const identity = parameter.tensor.unsafeGetTensorImpl();
      const at::Tensor alias = parameter.tensor.variable_data();
      if (deferred_ == nullptr || !deferred_->is_pending(parameter.tensor)) {
        present_.emplace(identity, alias);
      } else {
        awaited_[alias.storage().unsafeGetStorageImpl()].push_back({alias, identity});
      }
    }
  }
}

void InitialValues::fill(ShardedUnit& unit) {
  for (const auto& flat : unit.flats()) {
    for (std::size_t i = 0; i < flat->parameters().size(); ++i) {
      const auto value = present_.find(flat->parameters()[i].tensor.unsafeGetTensorImpl());
      if (value == present_.end()) continue;
      flat->take(i, value->second);
      present_.erase(value);
    }
  }
}

void InitialValues::draw(const std::vector<std::unique_ptr<ShardedUnit>>& units,
                         const Ranks* from_first) {
  if (deferred_ == nullptr) return;
  std::unordered_map<const at::TensorImpl*, std::pair<FlatParameter*, std::size_t>> places;
  for (const auto& unit : units) {
    for (const auto& flat : unit->flats()) {
      for (std::size_t i = 0; i < flat->parameters().size(); ++i) {
        places[flat->parameters()[i].tensor.unsafeGetTensorImpl()] = {flat.get(), i};
      }
    }
  }
  const auto take = [&](const c10::StorageImpl* storage, const at::Tensor& /*values*/) {
    const auto found = awaited_.find(storage);
    if (found == awaited_.end()) return true;  // a buffer
    for (const auto& [source, identity] : found->second) {
      const auto& [flat, i] = places.at(identity);
      flat->take(i, source);
    }
    return false;
  };
  if (from_first != nullptr) return draw_on_first_rank(*deferred_, *from_first, take);
  deferred_->fill(take);
}

}  // namespace phalanx::fsdp
