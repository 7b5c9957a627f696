// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// "compute.gemm" of "++compute.gemm=mkl": the field that an override sets, also of one that is
/// malformed.
std::string key_of(std::string_view override);

/// "compute" of the same: the field at the top.
std::string first_key(std::string_view override);

}  // namespace phalanx
