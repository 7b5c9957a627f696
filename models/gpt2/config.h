// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/tree/forward.h"

namespace phalanx::gpt2 {

/// The sizes of a GPT-2, under the names and with the defaults of Hugging Face's GPT2Config.
struct Config {
  int64_t vocab_size = 50257;
  int64_t n_positions = 1024;
  int64_t n_embd = 768;
  int64_t n_layer = 12;
  int64_t n_head = 12;
  std::optional<int64_t> n_inner;
  double embd_pdrop = 0.1;
  double attn_pdrop = 0.1;
  double resid_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;

  /// Width of a block's hidden layer: n_inner, or 4 * n_embd where that is not set.
  int64_t inner_width() const { return n_inner.value_or(4 * n_embd); }

  static void describe(config::Schema<Config>& s);
};

}  // namespace phalanx::gpt2
