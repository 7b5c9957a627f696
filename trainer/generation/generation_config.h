// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/forward.h"

namespace phalanx {

/// How texts are written; names and meanings are those of transformers' GenerationConfig.
struct GenerationConfig {
  int64_t max_new_tokens = 256;
  double temperature = 0;
  std::optional<int64_t> top_k;
  double top_p = 1;
  double repetition_penalty = 1;
  int64_t num_beams = 1;
  double length_penalty = 1;
  bool early_stopping = false;
  std::optional<std::vector<int64_t>> eos_token_id;
  std::vector<std::string> stop;
  int64_t seed = 0;
  bool use_cache = true;

  static void describe(config::Schema<GenerationConfig>& s);
};

}  // namespace phalanx
