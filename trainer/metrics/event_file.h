// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace phalanx {

/// Cuts off the half of an event that a crash or a full disk has left at the end of an event file:
/// readers wait there for the rest. Nothing happens to a file that ends with a whole one, nor to
/// one that is damaged elsewhere. Throws IoError.
void cut_torn_event(const std::filesystem::path& path);

}  // namespace phalanx
