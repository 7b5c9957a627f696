// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/checkpoint_progress.h"

#include "trainer/metrics/progress_line.h"

namespace phalanx {

void show_on_first_rank(Console& console, const Ranks& ranks, const std::string& what,
                        const ByteProgress& progress, const std::function<void()>& work) {
  if (!ranks.is_first()) return work();
  with_progress(console, ranks.is_single_rank() ? what : what + " (rank 0's part)", progress, work);
}

void show_on_first_rank(Console& console, const Ranks& ranks, const std::string& what,
                        const std::function<void(ByteProgress&)>& work) {
  ByteProgress progress;
  show_on_first_rank(console, ranks, what, progress, [&] { work(progress); });
}

}  // namespace phalanx
