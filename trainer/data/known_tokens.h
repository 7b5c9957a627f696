// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/dataset.h"

namespace phalanx {

/// The same samples; one with a token that is not in [0, vocabulary_size) cannot be read
/// (BrokenSampleError, with its place): on a GPU such a token would end the process's use of the
/// device, without saying which it was. Looks at the inputs and targets of each TokenBatch and
/// SequencePairBatch, whose rows are the samples asked for. For samples that are not read by
/// read_known.
std::shared_ptr<const Dataset> known_tokens(std::shared_ptr<const Dataset> dataset,
                                            int64_t vocabulary_size);

}  // namespace phalanx
