// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>

namespace phalanx {

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t checksum_of(std::string_view text) { return checksum_of(std::as_bytes(std::span(text))); }

std::vector<uint64_t> checksums_of(std::span<const std::byte> bytes, uint64_t chunk_bytes) {
  std::vector<uint64_t> checksums;
  checksums.reserve((bytes.size() + chunk_bytes - 1) / chunk_bytes);
  for (std::size_t begin = 0; begin < bytes.size(); begin += chunk_bytes) {
    checksums.push_back(checksum_of(
        bytes.subspan(begin, std::min<std::size_t>(chunk_bytes, bytes.size() - begin))));
  }
  return checksums;
}

std::string checksum_digits(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::optional<uint64_t> parse_checksum(std::string_view digits) {
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  // from_chars takes capitals and signs, which is not how checksums are written.
  if (error != std::errc() || stop != end || checksum_digits(value) != digits) return std::nullopt;
  return value;
}

}  // namespace phalanx
