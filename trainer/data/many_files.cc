// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/many_files.h"

#include <unistd.h>

#include "trainer/io/count_progress.h"
#include "trainer/metrics/shown_rank.h"

namespace phalanx {
namespace {

void show(const std::string& what, const WorkProgress& progress, const std::function<void()>& work,
          const ManyFilesShown& shown) {
  if (!shows_work_of_every_rank()) return work();
  if (shown.console != nullptr) {
    return with_progress(*shown.console, what, progress, work, shown.pace);
  }
  Console console(STDERR_FILENO);
  with_progress(console, what, progress, work, shown.pace);
}

}  // namespace

void look_at_each(const std::string& what, size_t count, const std::function<void(size_t)>& look,
                  const ManyFilesShown& shown) {
  CountProgress progress;
  progress.begin_of("files", count);
  const auto look_at_all = [&] {
    for (size_t file = 0; file < count; ++file) {
      look(file);
      ++progress.done;
    }
  };
  if (count <= shown.few) return look_at_all();
  show(what, progress, look_at_all, shown);
}

void look_for_files(const std::string& what, const std::function<void()>& look,
                    const ManyFilesShown& shown) {
  show(what, CountProgress(), look, shown);
}

}  // namespace phalanx
