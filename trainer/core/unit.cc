#include "trainer/core/unit.h"

#include <unordered_set>

namespace phalanx {

std::vector<NamedUnit> units(torch::nn::Module& root) {
  std::vector<NamedUnit> found;
  std::unordered_set<Unit*> seen;
  for (const auto& item : root.named_modules("", /*include_self=*/false)) {
    auto* const unit = dynamic_cast<Unit*>(item.value().get());
    if (unit != nullptr && seen.insert(unit).second) {
      found.push_back({item.key(), unit, item.value().get()});
    }
  }
  return found;
}

}  // namespace phalanx
