// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::compute {

/// What computes matrix products of single precision on this process's CPU.
enum class Gemm {
  automatic,        ///< The fastest one of this machine (selection.h); to be chosen, not used.
  library_default,  ///< What LibTorch takes by itself.
  mkl,              ///< MKL with the kernels that it keeps for Intel's CPUs (mkl_vendor_check.h).
  onednn,           ///< oneDNN in place of aten::mm and aten::addmm (onednn_products.h).
};

/// "auto", "default", "mkl", "onednn", as the config calls them.
std::string_view name_of(Gemm gemm);

/// The one with this name; nothing for a name that is none.
std::optional<Gemm> gemm_named(std::string_view name);

/// Why this process cannot use it, as the end of "…: "; empty where it can.
std::string why_unusable(Gemm gemm);

/// Those that differ from one another on this machine, `library_default` first.
std::vector<Gemm> candidates();

/// Takes it for all products of this process from now on. Comes before the first product: MKL keeps
/// its first answer, and throws std::logic_error where it has another one already. Precondition:
/// why_unusable() is empty.
void use(Gemm gemm);

}  // namespace phalanx::compute
