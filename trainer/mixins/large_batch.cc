// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/large_batch.h"

#include <fmt/format.h>

namespace phalanx {

std::string large_batch(int64_t batch_size, int64_t samples, int64_t ranks) {
  const int64_t share = samples / ranks + (samples % ranks == 0 ? 0 : 1);
  if (batch_size <= share) return "";
  const std::string of_rank = ranks == 1 ? "" : fmt::format(", {} a rank at most", share);
  return fmt::format(
      "training.batch_size is {}, and the training data has {} sample{}{}: an epoch is one step of "
      "one micro-batch with these alone; lower training.batch_size or use more data",
      batch_size, samples, samples == 1 ? "" : "s", of_rank);
}

}  // namespace phalanx
