// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class ProcessGroup;
}

namespace phalanx {

class Ranks;

/// The c10d group of these ranks, for engines that drive it themselves; never in a world of one.
/// Throws std::logic_error there, and when the group is closed.
const c10::intrusive_ptr<c10d::ProcessGroup>& process_group(const Ranks& ranks);

}  // namespace phalanx
