// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// How Llama 3.1 stretches rotary positions to a longer context: slow rotations are slowed further,
/// fast ones stay, those between are mixed (transformers' _compute_llama3_parameters). A section of
/// a model's config, under the names of Hugging Face's `rope_scaling`; the defaults are those of
/// Llama 3.1.
struct RotaryScaling {
  double factor = 8;            ///< How much slower the slow ones get.
  double low_freq_factor = 1;   ///< Rotations that turn fewer times over the context are slow.
  double high_freq_factor = 4;  ///< Rotations that turn more times over the context are fast.
  int64_t original_max_position_embeddings = 8192;  ///< The context before, in tokens.

  static void describe(config::Schema<RotaryScaling>& s);
};

}  // namespace phalanx
