// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// XXH3 with 64 bits and seed 0 (https://xxhash.com).
uint64_t checksum_of(std::span<const std::byte> bytes);
uint64_t checksum_of(std::string_view text);

/// The checksum of each chunk of so many bytes (> 0), one after the other; the last may be shorter.
std::vector<uint64_t> checksums_of(std::span<const std::byte> bytes, uint64_t chunk_bytes);

inline constexpr std::size_t kChecksumDigits = 16;

/// As 16 lower-case hexadecimal digits.
std::string checksum_digits(uint64_t checksum);

/// The reverse; nothing for any other text.
std::optional<uint64_t> parse_checksum(std::string_view digits);

}  // namespace phalanx
