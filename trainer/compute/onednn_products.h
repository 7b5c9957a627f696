// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx::compute {

/// Why this machine must not compute products with oneDNN; empty: it may. On CPUs of AVX2 without
/// AVX-512 oneDNN's kernel (avx_gemm_f32, in LibTorch 2.11) writes behind the end of its buffer: a
/// product of some 100 rows with a matrix of 50257 columns corrupts the heap.
std::string_view onednn_problem();

/// Has oneDNN compute aten::mm and aten::addmm of dense matrices of single precision in host
/// memory, or LibTorch again. Other products stay where they are.
void replace_products(bool replace);

}  // namespace phalanx::compute
