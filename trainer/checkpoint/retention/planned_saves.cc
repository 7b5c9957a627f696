// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/planned_saves.h"

#include <numeric>

namespace phalanx {
namespace {

// Whether the last save is one that `every` does not divide.
bool ends_between(const PlannedSaves& saves) {
  return saves.last > saves.after && saves.last % saves.every != 0;
}

}  // namespace

int64_t PlannedSaves::count() const {
  if (last <= after) return 0;
  return last / every - after / every + (ends_between(*this) ? 1 : 0);
}

int64_t PlannedSaves::divisible_by(int64_t n) const {
  if (last <= after) return 0;
  // Both divide multiples of every * factor, which may be more than a number holds.
  const int64_t factor = n / std::gcd(every, n);
  const int64_t regular =
      every > last / factor ? 0 : last / (every * factor) - after / (every * factor);
  return regular + (ends_between(*this) && last % n == 0 ? 1 : 0);
}

PlannedSaves PlannedSaves::newest(int64_t k) const {
  if (k >= count()) return *this;
  PlannedSaves rest = *this;
  rest.after = (last / every - (k - (ends_between(*this) ? 1 : 0))) * every;
  return rest;
}

}  // namespace phalanx
