#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/core/sharded_tensor_view.h"

namespace phalanx {

/// What keeps one part of a checkpoint from filling these views, one line each: tensors that are
/// missing or unexpected, with the nearest name on the other side, and those of another shape or
/// dtype. Empty when every tensor fits. Throws std::logic_error for views that are not whole.
std::vector<std::string> find_mismatches(const Manifest& manifest, std::string_view part,
                                         std::span<const ShardedTensorView> views);

}  // namespace phalanx
