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

std::string Dataset::describe(int64_t index, const std::string& problem) const {
  try {
    fail(index, "", problem);
  } catch (const BrokenSampleError& error) {
    return error.sample().message;
  }
  return problem;  // A data set whose `fail` does not throw names no place.
}

}  // namespace phalanx
