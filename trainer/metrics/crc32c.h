// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace phalanx {

/// CRC-32C (Castagnoli) as RFC 3720 defines it, by a table of 256 entries: event files are small.
uint32_t crc32c(std::string_view bytes);

/// The form that TFRecord files store: rotated and shifted, so that a sum of sums is not weak.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace phalanx
