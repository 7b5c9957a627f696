// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace phalanx {

class Ranks;

/// Whether an exception says that another rank is gone or silent: ours, c10d's or Gloo's, as an
/// engine meets them in backward. The cause lies elsewhere.
bool is_communication_error(const std::exception& error);

/// What a rank that fails tells the others of it, and learns from them.
struct Failure {
  std::string message;
  bool caused_by_peer = false;
  /// No other rank has reported the run's end before: this one has to.
  bool is_first = true;
  /// The rank that is the cause, where another one is and it is known.
  std::optional<int64_t> cause = {};
};

/// Notes in the ranks' store that this rank ends with `error`, whose text is `message`, as far as
/// the store can still be reached. Of the ranks that were ended by others one calls the roll, and
/// all name the rank that it finds missing; else what the others say of themselves: their own
/// error, or what they wait for.
Failure report_failure(const Ranks& ranks, const std::exception& error, std::string message);

}  // namespace phalanx
