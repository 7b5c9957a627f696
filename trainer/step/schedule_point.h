// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace phalanx {

/// Where a run is in its learning-rate schedules. They count steps, or epochs
/// (training.step_lr_interval).
struct SchedulePoint {
  int64_t at = 1;              ///< The present step or epoch, from 1 on.
  std::optional<int64_t> end;  ///< The run's last one; none: not known beforehand.
};

}  // namespace phalanx
