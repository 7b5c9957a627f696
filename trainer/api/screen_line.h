// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// A line of the start screen: "products", "mkl (measured on this machine)".
struct ScreenLine {
  std::string name;  ///< At most 10 characters.
  std::string text;
};

}  // namespace phalanx
