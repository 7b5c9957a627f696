// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "trainer/memory/deferred_init.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {

/// Where and how it is shown how many of a model's initial values have been drawn.
struct DrawingShown {
  Console* console = nullptr;  ///< Standard error, where none is given.
  ProgressPace pace;
  uint64_t few = 64 << 20;  ///< So many bytes or fewer are drawn at once: nothing is shown.
};

/// Has `draw` fill tensors that have `bytes` in all, and shows how many are filled, and the time
/// left; of several ranks the first one alone shows it (metrics/shown_rank.h). `draw` calls what it
/// gets for each tensor that it has filled. Throws what `draw` throws.
void show_drawing(uint64_t bytes,
                  const std::function<void(const DeferredInit::Filled& filled)>& draw,
                  const DrawingShown& shown = {});

}  // namespace phalanx
