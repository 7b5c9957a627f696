// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Rethrows the exception being handled with the step before its cause; a UserError stays one, and
/// before the first step everything does, and what another rank's end has caused always.
[[noreturn]] void rethrow_with_step(long step);

}  // namespace phalanx
