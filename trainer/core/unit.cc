#include "trainer/core/unit.h"

namespace phalanx {

std::vector<NamedUnit> units(torch::nn::Module& root) {
  std::vector<NamedUnit> found;
  for (const auto& item : root.named_modules("", /*include_self=*/false)) {
    if (auto* unit = dynamic_cast<Unit*>(item.value().get())) {
      found.push_back({item.key(), unit, item.value().get()});
    }
  }
  return found;
}

}  // namespace phalanx
