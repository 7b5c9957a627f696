// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace phalanx {

/// The most bytes of host memory that tensors have at a time while `work` runs, beyond those from
/// before, as far as this thread takes and frees them.
int64_t most_tensor_bytes(const std::function<void()>& work);

}  // namespace phalanx
