// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/config/trainer_order.h"

#include <algorithm>

#include "trainer/registry/trainers.h"

namespace phalanx {

std::vector<std::string> ordered_trainers() {
  std::vector<std::string> names = TrainerRegistry::instance().table().names();
  const auto usual = std::ranges::find(names, "supervised");
  if (usual != names.end()) std::rotate(names.begin(), usual, usual + 1);
  return names;
}

}  // namespace phalanx
