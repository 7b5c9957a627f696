// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/sample_order.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <utility>

namespace phalanx {

SampleOrder::SampleOrder(int64_t size, Places places) : size_(size), places_(std::move(places)) {}

SampleOrder SampleOrder::plain(int64_t size) { return {size, Identity{}}; }

SampleOrder SampleOrder::spread(int64_t size, int64_t count) { return {count, Spread{.of = size}}; }

SampleOrder SampleOrder::drawn(int64_t size, uint64_t seed, int64_t epoch) {
  const at::Generator generator =
      at::detail::createCPUGenerator(seed + static_cast<uint64_t>(epoch));
  const at::Tensor permutation = at::randperm(size, generator, at::kLong);
  const auto* const begin = permutation.const_data_ptr<int64_t>();
  return {size, std::vector<int64_t>(begin, begin + size)};
}

SampleOrder SampleOrder::computed(int64_t size, uint64_t seed, int64_t epoch) {
  return {size, ComputedPermutation(size, seed, static_cast<uint64_t>(epoch))};
}

int64_t SampleOrder::at(int64_t place) const {
  if (const auto* drawn = std::get_if<std::vector<int64_t>>(&places_)) {
    return (*drawn)[static_cast<size_t>(place)];
  }
  if (const auto* spread = std::get_if<Spread>(&places_)) {
    // In between, more than a number of 64 bits may hold.
    return static_cast<int64_t>(static_cast<__int128>(place) * spread->of / size_);
  }
  if (const auto* computed = std::get_if<ComputedPermutation>(&places_)) return computed->at(place);
  return place;
}

}  // namespace phalanx
