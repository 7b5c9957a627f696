// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/drawing_progress.h"

#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <optional>

#include "trainer/io/byte_progress.h"
#include "trainer/metrics/shown_rank.h"

namespace phalanx {

void show_drawing(uint64_t bytes,
                  const std::function<void(const DeferredInit::Filled& filled)>& draw,
                  const DrawingShown& shown) {
  ByteProgress progress;
  progress.begin(bytes);
  const DeferredInit::Filled filled = [&](const c10::StorageImpl* /*storage*/,
                                          const at::Tensor& values) {
    progress.done += values.nbytes();
    return true;
  };
  if (bytes <= shown.few || !shows_work_of_every_rank()) return draw(filled);
  std::optional<Console> errors;
  Console& console = shown.console != nullptr ? *shown.console : errors.emplace(STDERR_FILENO);
  with_progress(
      console, "drawing the model's weights", progress, [&] { draw(filled); }, shown.pace);
}

}  // namespace phalanx
