// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/base/joined.h"

namespace phalanx::remote_embedding {

std::vector<NamedTable> chosen_tables(torch::nn::Module& module,
                                      const std::vector<std::string>& names, int64_t servers) {
  std::vector<NamedTable> tables = lookup_tables(module);
  if (tables.empty()) {
    throw std::invalid_argument(
        "the model has no table that could lie elsewhere: its embeddings are no LookupTable");
  }
  const auto name_of = [](const NamedTable& table) -> const std::string& { return table.name; };
  for (const std::string& name : names) {
    if (std::ranges::find(tables, name, &NamedTable::name) != tables.end()) continue;
    throw std::invalid_argument(fmt::format("the model has no table '{}'; there are: {}", name,
                                            joined(tables, ", ", name_of)));
  }
  if (!names.empty()) {
    std::erase_if(tables, [&](const NamedTable& table) {
      return std::ranges::find(names, table.name) == names.end();
    });
  }
  if (static_cast<int64_t>(tables.size()) < servers) {
    throw std::invalid_argument(fmt::format("there are {} servers for {} tables ({})", servers,
                                            tables.size(), joined(tables, ", ", name_of)));
  }
  return tables;
}

std::vector<int64_t> deal_tables(const std::vector<NamedTable>& tables, int64_t servers) {
  std::vector<int64_t> bytes(static_cast<size_t>(servers));
  std::vector<int64_t> owners;
  for (const NamedTable& table : tables) {
    const auto least = std::ranges::min_element(bytes);
    *least += static_cast<int64_t>(table.weight.nbytes());
    owners.push_back(least - bytes.begin());
  }
  return owners;
}

}  // namespace phalanx::remote_embedding
