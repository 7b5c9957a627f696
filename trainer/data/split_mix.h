// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace phalanx {

/// The step of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014), and its mixing of 64 bits.
inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

constexpr uint64_t split_mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// Random numbers that depend on a few others alone: the same on every machine and in every thread.
class SplitMix64 {
 public:
  explicit SplitMix64(std::initializer_list<uint64_t> of) {
    for (const uint64_t number : of) state_ = split_mix(state_ + kSplitMixStep + number);
  }

  uint64_t next() { return split_mix(state_ += kSplitMixStep); }

  /// A number in [0, limit), for a limit far below 2^64: the high half of a product.
  uint64_t below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }

 private:
  uint64_t state_ = 0;
};

}  // namespace phalanx
