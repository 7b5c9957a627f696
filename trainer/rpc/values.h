// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "trainer/rpc/remote_reference.h"

namespace phalanx::rpc {

/// What a call carries, and what it answers.
struct Values {
  std::vector<at::Tensor> tensors = {};  ///< Defined, in host memory.
  std::string text = {};                 ///< Any bytes without a format of their own.
  std::vector<RemoteReference> references = {};
};

}  // namespace phalanx::rpc
