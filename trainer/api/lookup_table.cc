// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/lookup_table.h"

#include <torch/nn/module.h>

#include <unordered_set>

#include "trainer/api/modules.h"

namespace phalanx {

std::vector<NamedTable> lookup_tables(torch::nn::Module& root) {
  std::vector<NamedTable> tables;
  std::unordered_set<const LookupTable*> seen;
  for (const auto& [name, module] : modules::descendants(root)) {
    auto* const table = dynamic_cast<LookupTable*>(module);
    if (table == nullptr || !seen.insert(table).second) continue;
    tables.push_back({.name = name, .table = table, .weight = modules::embedding_weight(*module)});
  }
  return tables;
}

}  // namespace phalanx
