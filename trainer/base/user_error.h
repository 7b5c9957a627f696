// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace phalanx {

/// A mistake that the user can repair: a wrong config, a missing file, an unknown name. The message
/// says what was found, what is allowed and what to do; main prints it and exits with code 2.
/// Everything else that goes wrong is another exception and exits with code 1.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phalanx
