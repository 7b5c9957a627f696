// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/data/dataset.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The mean number of bytes of text that a target of `samples` stands for; 0 without targets. The
/// batches of `samples` are TokenBatch. An end-of-text token stands for no bytes. Of more than
/// 4,096 samples, reads as many at equal distances. Leaves out broken ones. Throws UserError where
/// more than a tenth of the targets are beyond the tokenizer: they are of another one.
double bytes_per_token(const Dataset& samples, const Tokenizer& tokenizer);

}  // namespace phalanx
