// SPDX-License-Identifier: Apache-2.0
#include "models/layers/rotary_scaling.h"

#include "models/layers/limits.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {

void RotaryScaling::describe(config::Schema<RotaryScaling>& s) {
  s.field("factor", &RotaryScaling::factor, "how much slower slow rotations get").at_least(1);
  s.field("low_freq_factor", &RotaryScaling::low_freq_factor,
          "rotations that turn fewer times than this over the original length are slowed by factor")
      .greater_than(0);
  s.field("high_freq_factor", &RotaryScaling::high_freq_factor,
          "rotations that turn more times than this over the original length are unchanged")
      .greater_than(0);
  s.field("original_max_position_embeddings", &RotaryScaling::original_max_position_embeddings,
          "longest sequence before the positions were stretched")
      .in_range(1, kLongestSequence)
      .unit("tokens");
  s.check([](const RotaryScaling& c) -> std::optional<std::string> {
    if (c.low_freq_factor < c.high_freq_factor) return std::nullopt;
    return "low_freq_factor must be below high_freq_factor";
  });
}

}  // namespace phalanx
