// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "trainer/io/work_progress.h"
#include "trainer/metrics/console.h"

namespace phalanx {

/// "verifying step-00000200  45%  120 MB of 266 MB, 1.2 GB/s, 1 s left": work by its bytes, at a
/// rate in bytes a second; 0: not known yet.
std::string progress_text(const std::string& what, uint64_t done, uint64_t all, double rate);

/// "validation  45%  120 of 266 micro-batches, 2m05s left": the same by its pieces, whose name is
/// `unit`.
std::string progress_text(const std::string& what, const char* unit, uint64_t done, uint64_t all,
                          double rate);

/// How often it is told how far some work is: first after so long.
struct ProgressPace {
  std::chrono::milliseconds live{200};  ///< On a terminal.
  /// Elsewhere, in a line of its own: the first one, and from one to the next.
  std::chrono::milliseconds first_line{std::chrono::seconds(2)};
  std::chrono::milliseconds line{std::chrono::seconds(10)};
};

/// Tells on a console, from a thread of its own and until the end of its life, how far some work
/// is. All that it is given but `what` must outlive it.
class ShownProgress {
 public:
  ShownProgress(Console& console, std::string what, const WorkProgress& progress,
                const ProgressPace& pace = {});
  ShownProgress(const ShownProgress&) = delete;
  ShownProgress& operator=(const ShownProgress&) = delete;
  ~ShownProgress();

 private:
  Console& console_;
  std::string what_;
  std::jthread thread_;
};

/// Does `work` on this thread, while another one tells on a console how far it is. Throws what
/// `work` throws.
void with_progress(Console& console, const std::string& what, const WorkProgress& progress,
                   const std::function<void()>& work, const ProgressPace& pace = {});

}  // namespace phalanx
