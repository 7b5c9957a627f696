#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace phalanx {

/// "verifying step-00000200  45%  120 MB of 266 MB, 1.2 GB/s, 0 s left": work by its bytes. `rate`
/// in bytes a second; 0: not known yet.
std::string progress_text(const std::string& what, uint64_t done, uint64_t all, double rate);

/// Does `work` while a line on standard error, where that is a terminal, tells how far it is:
/// `done` is asked from time to time, from another thread than the one that works. Throws what it
/// throws.
void with_progress(const std::string& what, uint64_t all, const std::function<uint64_t()>& done,
                   const std::function<void()>& work);

}  // namespace phalanx
