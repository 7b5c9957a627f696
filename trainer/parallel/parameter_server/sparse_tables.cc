// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/sparse_tables.h"

#include <ATen/ops/embedding.h>

#include <stdexcept>

namespace phalanx::parameter_server {

std::vector<NamedTable> sparse_tables(torch::nn::Module& module) {
  std::vector<NamedTable> tables = lookup_tables(module);
  std::erase_if(tables, [](const NamedTable& each) {
    return each.table->use() != TableUse::rows || !each.weight.requires_grad();
  });
  if (tables.empty()) {
    throw std::invalid_argument(
        "the model has no trained embedding that is only looked up: one that the head is tied to "
        "has a gradient of all rows");
  }
  return tables;
}

void make_gradients_sparse(const std::vector<NamedTable>& tables,
                           const std::weak_ptr<const void>& owner) {
  for (const NamedTable& each : tables) {
    each.table->look_up_by([weight = each.weight, owner](const at::Tensor& numbers) {
      return at::embedding(weight, numbers, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                           /*sparse=*/!owner.expired());
    });
  }
}

}  // namespace phalanx::parameter_server
