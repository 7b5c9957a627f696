// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace phalanx {

/// Something that all ranks do together failed on one of them: all get it, with that rank's
/// message, and none goes on as if it were done.
class SaveError : public std::runtime_error {
 public:
  SaveError(const std::string& message, bool is_here)
      : std::runtime_error(message), is_here_(is_here) {}

  /// Whether it failed on this rank, too.
  bool is_here() const { return is_here_; }

 private:
  bool is_here_;
};

}  // namespace phalanx
