// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/trainers.h"

namespace phalanx {

TrainerRegistry& TrainerRegistry::instance() {
  static TrainerRegistry registry;
  return registry;
}

bool TrainerRegistry::add_entry(Registration registration, TrainerEntry entry) {
  if (!table_.add(std::move(registration))) return false;
  entries_.push_back(entry);
  return true;
}

}  // namespace phalanx
