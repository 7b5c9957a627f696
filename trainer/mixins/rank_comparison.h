// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

class TrainerBase;

/// Checks that all ranks mean the same run: program, versions, device, config, model and data.
/// Every rank calls it. Throws UserError that names what differs, and where.
void compare_ranks(const TrainerBase& trainer);

}  // namespace phalanx
