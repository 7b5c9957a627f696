// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/metrics/record.h"

namespace phalanx {

/// Where records go: a file, the screen. A class that registers itself with REGISTER_SINK is
/// constructed from its Config; `open` comes first, then records in the order of steps.
class Sink {
 public:
  virtual ~Sink() = default;

  /// A run starts, or goes on after `resumed_step`: what was logged beyond that step is void and
  /// will come again. Without it the run starts from nothing. An IoError or std::system_error ends
  /// it before its first step, as the user's mistake. Called again, with a step, where a guard has
  /// the run go back to a checkpoint in its midst.
  virtual void open(const RunDescription& run, std::optional<int64_t> resumed_step) = 0;

  /// An IoError or std::system_error is told to the user, and the run goes on without this record:
  /// the next one comes all the same. A sink leaves no part of a record behind (LogFile).
  virtual void write(const Record& record) = 0;

  /// The run has ended; nothing follows. Errors as in `write`.
  virtual void close() {}
};

}  // namespace phalanx
