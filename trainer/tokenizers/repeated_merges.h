// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Whether the tokenizer's files list a pair twice among the merges. Version 0.1 took the first of
/// them, and the package tokenizers takes the last, as is done now: tokens that were kept from then
/// are others.
bool repeats_merges(const Tokenizer& tokenizer);

}  // namespace phalanx
