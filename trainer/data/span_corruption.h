// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/split_mix.h"

namespace phalanx {

/// Which tokens of a text are noise (T5, Raffel et al. 2020, section 3.3.4): spans of random
/// lengths.
struct SpanNoise {
  double density = 0.15;        ///< Share of the tokens; in (0, 0.5].
  double mean_span_length = 3;  ///< At least 1.
};

/// Lengths, in tokens, of a text and of the inputs and targets that corruption makes of it. These
/// two include the sentinels, one a span, and the end-of-text token.
struct CorruptionLengths {
  int64_t tokens = 0;
  int64_t inputs = 0;
  int64_t targets = 0;

  bool operator==(const CorruptionLengths&) const = default;
};

/// The longest text whose inputs are no longer than `input_length` (T5's
/// compute_input_and_target_lengths).
CorruptionLengths corruption_lengths(int64_t input_length, const SpanNoise& noise);

/// Spans of noise in a text of at least 2 tokens.
int64_t noise_spans(int64_t tokens, const SpanNoise& noise);

/// Whether each token of a text is noise (T5's random_spans_noise_mask): it begins with what is
/// none, ends with noise, and all ways to cut it into spans are equally likely.
std::vector<bool> noise_mask(int64_t tokens, const SpanNoise& noise, SplitMix64& random);

}  // namespace phalanx
