// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::compute {

/// MKL asks its own function mkl_serv_intel_cpu_true whether the CPU is Intel's, and where it is
/// not takes slower kernels than the CPU has instructions for (on AMD none with AVX-512). The wheel
/// exports the function, so the definition of the executable comes first. It is undocumented, and
/// therefore an option that can be switched off: `compute.gemm`.

/// Whether LibTorch holds an MKL that asks this executable.
bool mkl_asks_for_vendor();

/// MKL's own answer. Precondition: mkl_asks_for_vendor().
bool is_intel_cpu();

/// From now on MKL hears "yes", or what it would have found itself. Throws std::logic_error where
/// it has asked already and would have heard something else: it keeps its first answer.
void answer_vendor_check(bool yes);

}  // namespace phalanx::compute
