#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace phalanx {

/// XXH3 with 64 bits and seed 0 over bytes that come piece by piece.
class Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  ~Checksum();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// The sum so far, as 16 lower-case hexadecimal digits.
  std::string digits() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The checksum of a whole file, read in pieces. Throws IoError.
std::string checksum_of_file(const std::filesystem::path& path);

}  // namespace phalanx
