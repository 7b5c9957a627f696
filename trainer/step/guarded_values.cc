// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/guarded_values.h"

#include "trainer/api/named_values.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/loss_parts.h"

namespace phalanx {

GuardedValues guarded_values(const std::vector<std::pair<std::string, at::Tensor>>& loss_parts,
                             double norm, const Ranks& ranks) {
  double loss = 0;
  for (const auto& [name, value] : loss_parts) loss += value.item().toDouble();
  NamedValues values{{"loss", loss}, {"norm", norm / static_cast<double>(ranks.world_size())}};
  sum_over_ranks(values, ranks);
  return {.loss = values[0].second, .grad_norm = values[1].second};
}

}  // namespace phalanx
