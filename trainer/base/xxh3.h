// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace phalanx {

/// The hash XXH3 (https://xxhash.com, seed 0) of bytes that come in parts: that of all of them.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);

  /// With 64 bits, as 16 lower-case hexadecimal digits.
  std::string digits64() const;
  /// With 128 bits, as 32.
  std::string digits128() const;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

/// The same of one text.
std::string xxh3_digits64(std::string_view text);
std::string xxh3_digits128(std::string_view text);

}  // namespace phalanx
