// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/token_set.h"

namespace phalanx {

/// Where documents begin.
inline std::vector<int64_t> places_of(const std::vector<DocumentBegin>& documents) {
  std::vector<int64_t> places;
  for (const DocumentBegin& document : documents) places.push_back(document.place);
  return places;
}

}  // namespace phalanx
