// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "trainer/api/lookup_table.h"

namespace phalanx::parameter_server {

/// The trained tables of a model that are looked up alone (TableUse::rows), in its order: their
/// gradients may have the rows of a pass alone, as of torch's `nn.Embedding(sparse=True)`. Throws
/// std::invalid_argument for a model without one.
std::vector<NamedTable> sparse_tables(torch::nn::Module& module);

/// Has the gradients of these tables be sparse in passes for as long as the owner lives.
void make_gradients_sparse(const std::vector<NamedTable>& tables,
                           const std::weak_ptr<const void>& owner);

}  // namespace phalanx::parameter_server
