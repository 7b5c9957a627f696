// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx::power_sgd {

/// Makes the columns of each matrix orthonormal, in place: [matrices, rows, columns], not more
/// columns than rows. Up to two columns, and in 16 bits, by Gram-Schmidt, with `epsilon` added to
/// each norm; otherwise by a QR decomposition (powerSGD_hook.py: _orthogonalize). A column of zeros
/// becomes NaN where `epsilon` is 0.
void orthogonalize(const at::Tensor& matrices, double epsilon);

}  // namespace phalanx::power_sgd
