// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// What an exception says, without LibTorch's backtrace.
std::string error_text(const std::exception& error);

}  // namespace phalanx
