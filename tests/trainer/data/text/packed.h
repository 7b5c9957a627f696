// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// A text as gzip has it, or Zstandard.
std::string gzip(const std::string& text);
std::string zstd(const std::string& text);

}  // namespace phalanx
