// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/padded_rows.h"

#include <algorithm>
#include <iterator>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

int64_t longest_of(std::span<const std::vector<int64_t>> rows) {
  int64_t longest = 0;
  for (const auto& row : rows) longest = std::max<int64_t>(longest, std::ssize(row));
  return longest;
}

}  // namespace

at::Tensor padded_rows(std::span<const std::vector<int64_t>> rows, int64_t filler) {
  const int64_t width = longest_of(rows);
  at::Tensor padded = tensors::empty({std::ssize(rows), width}, at::kLong);
  auto* places = padded.mutable_data_ptr<int64_t>();
  for (const auto& row : rows) {
    std::fill(std::copy(row.begin(), row.end(), places), places + width, filler);
    places += width;
  }
  return padded;
}

at::Tensor mask_of_rows(std::span<const std::vector<int64_t>> rows) {
  const int64_t width = longest_of(rows);
  const auto is_full = [&](const auto& row) { return std::ssize(row) == width; };
  if (std::all_of(rows.begin(), rows.end(), is_full)) return {};
  at::Tensor mask = tensors::zeros({std::ssize(rows), width}, at::kBool);
  auto* places = mask.mutable_data_ptr<bool>();
  for (const auto& row : rows) {
    std::fill_n(places, row.size(), true);
    places += width;
  }
  return mask;
}

}  // namespace phalanx
