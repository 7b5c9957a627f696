// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace phalanx {

/// A permutation of 0, 1, ..., size - 1 that is computed place by place, not stored: the
/// generalised Feistel network of Black and Rogaway (Ciphers with arbitrary finite domains, CT-RSA
/// 2002). Equal for equal (size, seed, epoch), on every machine. Its quality is that of a shuffle,
/// not of a cipher.
class ComputedPermutation {
 public:
  /// `size` >= 0.
  ComputedPermutation(int64_t size, uint64_t seed, uint64_t epoch);

  int64_t size() const { return size_; }
  /// What stands at `place`, in [0, size).
  int64_t at(int64_t place) const;

 private:
  static constexpr int kRounds = 8;

  int64_t size_;
  uint64_t width_;  // of the rectangle whose cells are permuted; width * height >= size
  uint64_t height_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace phalanx
