// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx::fuzzing {

/// Encodes some texts, and decodes them and other tokens. Throws Violation for a token that is not
/// in the vocabulary, and for a text that is no UTF-8.
void use(const Tokenizer& tokenizer);

}  // namespace phalanx::fuzzing
