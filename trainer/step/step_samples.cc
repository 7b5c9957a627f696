// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

constexpr std::ptrdiff_t kNamed = 8;

}  // namespace

std::vector<std::vector<int64_t>> numbers_of(
    std::span<const std::unique_ptr<Batch>> micro_batches) {
  std::vector<std::vector<int64_t>> numbers;
  for (const auto& batch : micro_batches) {
    numbers.push_back(batch->counts ? batch->sample_numbers : std::vector<int64_t>());
  }
  return numbers;
}

std::string samples_text(std::span<const std::vector<int64_t>> numbers) {
  std::vector<int64_t> all;
  for (const auto& each : numbers) all.insert(all.end(), each.begin(), each.end());
  if (all.empty()) return "";
  const std::ptrdiff_t shown = std::min(std::ssize(all), kNamed);
  const std::ptrdiff_t more = std::ssize(all) - shown;
  return fmt::format("sample{} {}{}", all.size() == 1 ? "" : "s",
                     fmt::join(all.begin(), all.begin() + shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string samples_of_ranks(std::span<const std::vector<int64_t>> numbers, const Ranks& ranks) {
  const std::string own = samples_text(numbers);
  if (ranks.is_single_rank()) return own;
  std::string all;
  int64_t rank = 0;
  for (const std::string& text : ranks.all_gather(own)) {
    if (!text.empty()) {
      all += fmt::format("{}{} on rank {}", all.empty() ? "" : "; ", text, rank);
    }
    ++rank;
  }
  return all;
}

}  // namespace phalanx
