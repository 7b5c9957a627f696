// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/loss.h"

namespace phalanx {

/// The loss of a micro-batch of the losses of its parts, on `device`: each a mean over its own
/// tokens, so that each counts by its share of them. Metrics are fed what all parts feed; a part
/// without tokens adds nothing, as a micro-batch without any does. Throws std::logic_error where
/// the losses have other parts.
Loss gathered(std::vector<std::optional<Loss>> losses,
              std::span<const std::unique_ptr<Batch>> parts, at::Device device);

}  // namespace phalanx
