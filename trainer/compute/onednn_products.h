// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::compute {

/// Whether LibTorch was built with oneDNN.
bool has_onednn();

/// Has oneDNN compute aten::mm and aten::addmm of dense matrices of single precision in host
/// memory, or LibTorch again. Other products stay where they are.
void replace_products(bool replace);

}  // namespace phalanx::compute
