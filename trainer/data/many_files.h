// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {

/// Where and how it is shown how many of many files have been looked at.
struct ManyFilesShown {
  Console* console = nullptr;  ///< Standard error, where none is given.
  ProgressPace pace;
  size_t few = 1000;  ///< So many files or fewer are looked at at once: nothing is shown.
};

/// Calls `look` for each of the files 0 to `count` - 1, and shows how many are done and the time
/// left; `what` says what it is, such as "opening data". Of several ranks the first one alone shows
/// it (metrics/shown_rank.h). Throws what `look` throws.
void look_at_each(const std::string& what, size_t count, const std::function<void(size_t)>& look,
                  const ManyFilesShown& shown = {});

/// The same of files whose number is not known yet: shows `what`.
void look_for_files(const std::string& what, const std::function<void()>& look,
                    const ManyFilesShown& shown = {});

}  // namespace phalanx
