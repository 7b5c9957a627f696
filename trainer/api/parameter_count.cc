// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/parameter_count.h"

#include <fmt/format.h>

#include <cstdint>

namespace phalanx {

std::string count_text(const std::vector<NamedParameter>& parameters) {
  int64_t elements = 0;
  for (const NamedParameter& parameter : parameters) elements += parameter.tensor.numel();
  return fmt::format("{} tensor{}, {} parameter{}", parameters.size(),
                     parameters.size() == 1 ? "" : "s", elements, elements == 1 ? "" : "s");
}

}  // namespace phalanx
