// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "trainer/io/byte_progress.h"
#include "trainer/metrics/console.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Does every rank's work; on the first one a console tells how far its own part is, which is about
/// as large as the others'. Throws what `work` throws.
void show_on_first_rank(Console& console, const Ranks& ranks, const std::string& what,
                        const std::function<void(ByteProgress&)>& work);

/// The same, where `progress` is counted by others.
void show_on_first_rank(Console& console, const Ranks& ranks, const std::string& what,
                        const ByteProgress& progress, const std::function<void()>& work);

}  // namespace phalanx
