// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "trainer/io/byte_progress.h"
#include "trainer/metrics/console.h"

namespace phalanx {

/// "verifying step-00000200  45%  120 MB of 266 MB, 1.2 GB/s, 1 s left": work by its bytes, at a
/// rate in bytes a second; 0: not known yet.
std::string progress_text(const std::string& what, uint64_t done, uint64_t all, double rate);

/// How often it is told how far some work is: first after so long.
struct ProgressPace {
  std::chrono::milliseconds live{200};                       ///< On a terminal.
  std::chrono::milliseconds line{std::chrono::seconds(10)};  ///< Elsewhere, in a line of its own.
};

/// Does `work` on this thread, while another one tells on a console how far it is. Throws what
/// `work` throws.
void with_progress(Console& console, const std::string& what, const ByteProgress& progress,
                   const std::function<void()>& work, const ProgressPace& pace = {});

}  // namespace phalanx
