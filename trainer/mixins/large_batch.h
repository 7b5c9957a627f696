// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx {

/// What becomes of micro-batches (`training.batch_size`) that are larger than a rank's share of
/// the training data's `samples`, in one line with both numbers; empty: they are not. `ranks`:
/// those among which samples are dealt.
std::string large_batch(int64_t batch_size, int64_t samples, int64_t ranks);

}  // namespace phalanx
