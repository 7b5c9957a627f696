// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/activity.h"

#include <fmt/format.h>

namespace phalanx {

void enter(const Ranks& ranks, int64_t step, std::string_view activity) {
  ranks.set_activity(fmt::format("step {}, {}", step, activity));
}

std::string place_of(int64_t step, std::string_view activity) {
  return step == 0 ? std::string(activity) : fmt::format("step {}, {}", step, activity);
}

}  // namespace phalanx
