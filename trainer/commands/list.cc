#include <fmt/format.h>

#include <algorithm>

#include "trainer/commands/command.h"
#include "trainer/config/nearest.h"
#include "trainer/config/user_error.h"
#include "trainer/registry/registry.h"

namespace phalanx {
namespace {

std::string plural(const NameTable& table) { return table.kind() + "s"; }

// By kind: the order of registration is the linker's.
std::vector<const NameTable*> tables() {
  auto tables = NameTable::all();
  std::sort(tables.begin(), tables.end(),
            [](const auto* a, const auto* b) { return a->kind() < b->kind(); });
  return tables;
}

void print(const NameTable& table) {
  fmt::print("{}:\n", plural(table));
  for (const auto& name : table.names()) fmt::print("  {}\n", name);
}

}  // namespace

int run_list(Arguments arguments) {
  if (arguments.empty()) {
    for (const auto* table : tables()) print(*table);
    return 0;
  }
  std::vector<std::string> kinds;
  for (const auto* table : tables()) {
    if (arguments.front() == plural(*table) || arguments.front() == table->kind()) {
      print(*table);
      return 0;
    }
    kinds.push_back(plural(*table));
  }
  throw UserError(unknown_name("kind", arguments.front(), kinds));
}

}  // namespace phalanx
