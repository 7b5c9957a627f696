// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx {

/// "512 B", "1.50 MB": with three digits, in powers of 1000.
std::string bytes_text(uint64_t bytes);

}  // namespace phalanx
