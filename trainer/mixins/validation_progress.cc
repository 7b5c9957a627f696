// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/validation_progress.h"

#include <cstdint>

#include "trainer/io/count_progress.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {

void show_validation(const Ranks& ranks,
                     const std::function<void(const WorkCount& count)>& validation) {
  if (!ranks.is_first()) return validation({});
  CountProgress progress;
  const WorkCount count{
      .begin = [&](int64_t pieces,
                   const char* unit) { progress.begin_of(unit, static_cast<uint64_t>(pieces)); },
      .one_done = [&] { ++progress.done; }};
  with_progress(Console::standard(), "validation", progress, [&] { validation(count); });
}

}  // namespace phalanx
