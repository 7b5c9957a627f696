// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/dataset.h"

#include <fmt/format.h>

#include "trainer/api/broken_sample.h"

namespace phalanx {

void Dataset::fail(int64_t index, const std::string& kind, const std::string& problem) const {
  throw BrokenSampleError({.source = "the data set",
                           .kind = kind,
                           .message = fmt::format("sample {}: {}", index, problem)});
}

}  // namespace phalanx
