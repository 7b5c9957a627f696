// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/test_device/clock.h"

namespace phalanx::test_device {

/// Once that the host waited for the device.
struct HostSync {
  std::string reason;          ///< kItem, ..., or the operator whose shape or number it needed.
  uint64_t of_this_step = 0;   ///< Operations of this step that it waited for.
  uint64_t of_before = 0;      ///< Operations of steps before, which it had not waited for yet.
  uint64_t queued_behind = 0;  ///< Operations that were enqueued by then and not waited for.
  std::string calls = {};      ///< If it drains: Phalanx's functions on the stack, innermost first.

  /// The device is through with this step's work so far, or with all it had: it runs dry.
  bool drains() const { return of_this_step > 0 || (of_before > 0 && queued_behind == 0); }
};

inline constexpr const char* kItem = "item";
inline constexpr const char* kCopyToHost = "copy to host";
inline constexpr const char* kCopyToDevice = "copy to device";
inline constexpr const char* kPageableCopy = "copy from or to memory that is not pinned";
inline constexpr const char* kStream = "synchronize stream";
inline constexpr const char* kDevice = "synchronize device";
inline constexpr const char* kEvent = "synchronize event";

/// Counts from when it is made: a step of the host begins there. What was enqueued before is over
/// as soon as the host asks: an event of an earlier step may be queried and, with work behind it,
/// waited for.
class SyncCount {
 public:
  SyncCount();

  /// Waits that drain the device.
  int64_t drains() const;
  /// The same by reason.
  std::map<std::string, int64_t> by_reason() const;
  /// Every wait, those that drain nothing among them.
  std::vector<HostSync> all() const;

 private:
  std::size_t first_;
};

/// Those that drain, a line each, for the message of a test; empty without any.
std::string describe_drains(const std::vector<HostSync>& syncs);

/// The host waits for `clock`; counted by `reason`.
void synchronize(const std::string& reason, const Clock& clock);

/// What a query of an event or a stream is answered: not before the host has waited for what this
/// step has enqueued. Throws std::runtime_error for who asks without end.
bool is_over(const Clock& clock);

}  // namespace phalanx::test_device
