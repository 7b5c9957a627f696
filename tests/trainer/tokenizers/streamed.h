// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Expects that StreamingDecoder makes the same of random tokens as `decode`, in whole characters.
void expect_streamed(const Tokenizer& tokenizer, std::mt19937& random);

}  // namespace phalanx
