// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/guarded_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "trainer/api/named_values.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/loss_parts.h"

namespace phalanx {
namespace {

constexpr std::ptrdiff_t kNamed = 8;

std::string samples_of(std::span<const std::unique_ptr<Batch>> micro_batches) {
  std::vector<int64_t> numbers;
  for (const auto& batch : micro_batches) {
    if (!batch->counts) continue;
    numbers.insert(numbers.end(), batch->sample_numbers.begin(), batch->sample_numbers.end());
  }
  if (numbers.empty()) return "";
  const std::ptrdiff_t shown = std::min(std::ssize(numbers), kNamed);
  const std::ptrdiff_t more = std::ssize(numbers) - shown;
  return fmt::format("sample{} {}{}", numbers.size() == 1 ? "" : "s",
                     fmt::join(numbers.begin(), numbers.begin() + shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

GuardedValues guarded_values(const std::vector<std::pair<std::string, at::Tensor>>& loss_parts,
                             double norm, const Ranks& ranks) {
  double loss = 0;
  for (const auto& [name, value] : loss_parts) loss += value.item().toDouble();
  NamedValues values{{"loss", loss}, {"norm", norm / static_cast<double>(ranks.world_size())}};
  sum_over_ranks(values, ranks);
  return {.loss = values[0].second, .grad_norm = values[1].second};
}

std::string samples_of_ranks(std::span<const std::unique_ptr<Batch>> micro_batches,
                             const Ranks& ranks) {
  const std::string own = samples_of(micro_batches);
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
