// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/lookup_table.h"

namespace phalanx::remote_embedding {

/// The tables of these names, in the model's order; of all where no name is given. Throws
/// std::invalid_argument for a model without tables, for a name that it does not have, with those
/// that it has, and for fewer tables than `servers`.
std::vector<NamedTable> chosen_tables(torch::nn::Module& module,
                                      const std::vector<std::string>& names, int64_t servers);

/// The server of each table, the same on all ranks: in order, each to the one with the least.
std::vector<int64_t> deal_tables(const std::vector<NamedTable>& tables, int64_t servers);

}  // namespace phalanx::remote_embedding
