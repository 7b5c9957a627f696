// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/initial_values.h"

#include <utility>

#include "trainer/api/modules.h"
#include "trainer/parallel/broadcast_states.h"

namespace phalanx::fsdp {

void broadcast_present(torch::nn::Module& module, const Ranks& ranks, bool with_buffers,
                       const DeferredInit* deferred) {
  std::vector<at::Tensor> states;
  const auto add = [&](const at::Tensor& tensor) {
    if (deferred == nullptr || !deferred->is_pending(tensor)) states.push_back(tensor.detach());
  };
  for (const at::Tensor& parameter : modules::parameters(module)) add(parameter);
  if (with_buffers) {
    for (const at::Tensor& buffer : modules::buffers(module)) add(buffer);
  }
  if (!states.empty()) broadcast_tensors(states, ranks);
}

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
  deferred_->fill([&](const c10::StorageImpl* storage, const at::Tensor& values) {
    if (from_first != nullptr) from_first->broadcast(values);
    const auto found = awaited_.find(storage);
    if (found == awaited_.end()) return true;  // a buffer
    for (const auto& [source, identity] : found->second) {
      const auto& [flat, i] = places.at(identity);
      flat->take(i, source);
    }
    return false;
  });
}

}  // namespace phalanx::fsdp
