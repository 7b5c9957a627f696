// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/long.h"

/// With
///   --test_env=PHALANX_TREE_SEED=17 --test_filter='*/3Ranks'
/// one seed runs alone, on 3 ranks. PHALANX_TREE_SEEDS=300 runs so many seeds of each world; by
/// default they are few, and many with --config=long.
namespace phalanx::fsdp::testing {

inline constexpr uint64_t kLongSeeds = 1000;

/// [first, end).
struct Seeds {
  uint64_t first = 0;
  uint64_t end = 0;
};

/// `usual`: how many run by default.
inline Seeds seeds_to_run(uint64_t usual) {
  if (const char* one = std::getenv("PHALANX_TREE_SEED")) {
    const uint64_t seed = std::strtoull(one, nullptr, 10);
    return {seed, seed + 1};
  }
  const char* many = std::getenv("PHALANX_TREE_SEEDS");
  uint64_t end = runs_long_tests() ? kLongSeeds : usual;
  if (many != nullptr) end = std::strtoull(many, nullptr, 10);
  tell_sample(end, kLongSeeds, "random trees");
  return {0, end};
}

}  // namespace phalanx::fsdp::testing
