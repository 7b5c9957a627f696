// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace phalanx {

/// An engine that has all ranks move some of the model's buffers alike in each forward pass, such
/// as the running statistics of synchronized batch normalization. A rank whose micro-batch does not
/// count keeps what its pass has made of them.
class CommonBuffers {
 public:
  virtual ~CommonBuffers() = default;

  /// Those buffers, which may be written.
  virtual std::vector<at::Tensor> common_buffers() const = 0;
};

}  // namespace phalanx
