// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace phalanx {

/// The columns of the terminal behind an open descriptor, at this moment. Where that is no
/// terminal, or one that does not say: those of COLUMNS, if that is a number from 20 to 1000, or
/// else 80.
std::size_t terminal_width(int descriptor);

}  // namespace phalanx
