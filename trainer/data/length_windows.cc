// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/length_windows.h"

#include <algorithm>
#include <utility>

namespace phalanx {

LengthWindows::LengthWindows(int64_t size, int64_t window, SampleAt sample_at, LengthOf length_of)
    : size_(size),
      window_(window),
      sample_at_(std::move(sample_at)),
      length_of_(std::move(length_of)) {}

std::vector<int64_t> LengthWindows::samples_at(std::span<const int64_t> places) const {
  std::vector<int64_t> samples;
  int64_t number = -1;
  std::vector<int64_t> sorted;  // The window of that number.
  for (const int64_t place : places) {
    if (place / window_ != number) {
      number = place / window_;
      sorted = sorted_window(number);
    }
    samples.push_back(sorted[static_cast<size_t>(place % window_)]);
  }
  return samples;
}

std::vector<int64_t> LengthWindows::sorted_window(int64_t number) const {
  const int64_t begin = number * window_;
  const int64_t end = std::min(begin + window_, size_);
  std::vector<std::pair<int64_t, int64_t>> by_length;
  for (int64_t place = begin; place < end; ++place) {
    const int64_t sample = sample_at_(place);
    by_length.emplace_back(-length_of_(sample), sample);
  }
  std::stable_sort(by_length.begin(), by_length.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int64_t> samples;
  for (const auto& [length, sample] : by_length) samples.push_back(sample);
  return samples;
}

}  // namespace phalanx
