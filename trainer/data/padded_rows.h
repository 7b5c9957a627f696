// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace phalanx {

/// Rows of tokens as int64 [rows, length of the longest]; shorter ones are filled up with `filler`.
at::Tensor padded_rows(std::span<const std::vector<int64_t>> rows, int64_t filler);

/// Whether each place of padded_rows holds a token: bool of that shape. Undefined where all do.
at::Tensor mask_of_rows(std::span<const std::vector<int64_t>> rows);

}  // namespace phalanx
