// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/uneven_all_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "trainer/ranks/collectives/numbers.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// "[2, 3] of Float": what a message shows, and what ranks compare, without the rows.
std::string text_of(at::IntArrayRef sizes, const at::Tensor& tensor) {
  std::string text;
  for (const int64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ", ", size);
  return fmt::format("[{}] of {}", text, c10::toString(tensor.scalar_type()));
}

void require_alike(const Ranks& ranks, const at::Tensor& input) {
  const auto rows = ranks.all_gather(text_of(input.sizes().slice(1), input));
  const auto other = std::ranges::find_if(rows, [&](const auto& row) { return row != rows[0]; });
  if (other == rows.end()) return;
  const auto whole = ranks.all_gather(text_of(input.sizes(), input));
  const auto rank = other - rows.begin();
  throw std::invalid_argument(fmt::format("all-gather: rank 0 has {} and rank {} {}", whole[0],
                                          rank, whole[static_cast<size_t>(rank)]));
}

}  // namespace

std::vector<at::Tensor> uneven_all_gather(const Ranks& ranks, const at::Tensor& input) {
  if (input.dim() == 0) {
    throw std::invalid_argument("all-gather: a tensor without dimensions has no rows");
  }
  if (ranks.is_single_rank()) return {input.clone()};
  require_alike(ranks, input);
  const auto rows = all_gather_numbers(ranks, std::array<int64_t, 1>{input.size(0)});
  const int64_t most = *std::ranges::max_element(rows);
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes[0] = most;
  const at::Tensor padded = tensors::zeros(sizes, input.options());
  padded.narrow(0, 0, input.size(0)).copy_(input);
  sizes[0] = most * ranks.world_size();
  const at::Tensor all = tensors::empty(sizes, input.options());
  if (all.numel() > 0) {
    // As bytes: Gloo knows fewer dtypes than it could move.
    ranks.all_gather(all.view({-1}).view(at::kByte), padded.view({-1}).view(at::kByte));
  }
  std::vector<at::Tensor> parts;
  for (const int64_t count : rows) {
    const auto rank = static_cast<int64_t>(parts.size());
    parts.push_back(all.narrow(0, rank * most, count));
  }
  return parts;
}

}  // namespace phalanx
