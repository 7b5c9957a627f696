// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

/// Tests whose cases take long run a sample of them, and all with `./bazelw test --config=long`;
/// tests/long.py has the same for Python.
namespace phalanx {

/// Whether all is to be run: .bazelrc's config `long` sets the variable.
inline bool runs_long_tests() {
  const char* const value = std::getenv("PHALANX_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

/// Prints how much of it a test runs: "a sample: 6 of 12 ways to train".
inline void tell_sample(std::size_t done, std::size_t whole, std::string_view what) {
  const int size = static_cast<int>(what.size());
  if (done >= whole) {
    std::printf("all %zu %.*s\n", whole, size, what.data());
  } else {
    std::printf("a sample: %zu of %zu %.*s; --config=long runs more\n", done, whole, size,
                what.data());
  }
  std::fflush(stdout);  // a rank that is forked must not print it again
}

/// The first `count` of the values, or all in a long test; says how many of what. Who lists the
/// values puts one of each kind first.
template <class Value>
std::vector<Value> sample_of(std::vector<Value> values, std::size_t count, std::string_view what) {
  const std::size_t done = runs_long_tests() || count > values.size() ? values.size() : count;
  tell_sample(done, values.size(), what);
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(done), values.end());
  return values;
}

}  // namespace phalanx
