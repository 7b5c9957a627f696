#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// What an exception says, without LibTorch's backtrace.
std::string message_of(const std::exception& exception);

/// Rethrows the exception being handled with the step before its cause; a UserError stays one, and
/// before the first step everything does.
[[noreturn]] void rethrow_with_step(long step);

}  // namespace phalanx
