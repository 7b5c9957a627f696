// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/held_slices.h"

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "trainer/checkpoint/format/checksum.h"
#include "trainer/ranks/collectives/numbers.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

std::string description_of(std::span<const ShardedTensorView> views) {
  std::string text;
  for (const ShardedTensorView& view : views) {
    text += fmt::format("{} {} {}\n", view.name, static_cast<int>(view.dtype), view.shape);
  }
  return text;
}

void require_same_tensors(const Ranks& ranks, std::span<const ShardedTensorView> views) {
  const std::string mine = checksum_digits(checksum_of(description_of(views)));
  const std::vector<std::string> all = ranks.all_gather(mine);
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const auto& t) { return t != all[0]; });
  if (other == all.end()) return;
  throw std::logic_error(fmt::format(
      "ranks 0 and {} hold different tensors, or in a different order: a checkpoint needs the same "
      "names, shapes and dtypes on all",
      other - all.begin()));
}

/// What a rank sends about one view.
struct Row {
  int64_t begin;
  int64_t end;
  int64_t first_holder;  ///< Tells ranges apart.
  bool counts;           ///< This rank is among the holders.
};
constexpr size_t kNumbersOfRow = 4;

Row row_of(const ShardedTensorView& view, int64_t rank) {
  const auto& replicas = view.replicas;
  return {.begin = view.begin,
          .end = view.end,
          .first_holder = *std::min_element(replicas.begin(), replicas.end()),
          .counts = std::find(replicas.begin(), replicas.end(), rank) != replicas.end()};
}

/// Every rank's rows, rank after rank.
std::vector<Row> gather_rows(const Ranks& ranks, std::span<const ShardedTensorView> views) {
  std::vector<int64_t> mine;
  mine.reserve(views.size() * kNumbersOfRow);
  for (const ShardedTensorView& view : views) {
    const Row row = row_of(view, ranks.rank());
    mine.insert(mine.end(), {row.begin, row.end, row.first_holder, row.counts ? 1 : 0});
  }
  const std::vector<int64_t> all = all_gather_numbers(ranks, mine);
  std::vector<Row> rows;
  rows.reserve(all.size() / kNumbersOfRow);
  for (size_t i = 0; i < all.size(); i += kNumbersOfRow) {
    rows.push_back({.begin = all[i],
                    .end = all[i + 1],
                    .first_holder = all[i + 2],
                    .counts = all[i + 3] == 1});
  }
  return rows;
}

void add_holder(std::map<int64_t, HeldSlice>& slices, const Row& row, int64_t rank,
                const std::string& name) {
  if (!row.counts || row.begin == row.end) return;
  HeldSlice& slice = slices.try_emplace(row.first_holder, row.begin, row.end).first->second;
  if (slice.begin != row.begin || slice.end != row.end) {
    throw std::logic_error(
        fmt::format("rank {} holds another range of '{}' than rank {}, whose replica it is", rank,
                    name, row.first_holder));
  }
  slice.holders.push_back(rank);
}

void require_cover(const HeldTensor& tensor) {
  int64_t covered = 0;
  for (const HeldSlice& slice : tensor.slices) {
    if (slice.begin != covered) {
      throw std::logic_error(fmt::format("the ranks' ranges of '{}' {} at element {}", tensor.name,
                                         slice.begin > covered ? "leave a gap" : "overlap",
                                         std::min(slice.begin, covered)));
    }
    covered = slice.end;
  }
  if (covered != tensor.elements()) {
    throw std::logic_error(fmt::format("the ranks hold {} of the {} elements of '{}'", covered,
                                       tensor.elements(), tensor.name));
  }
}

}  // namespace

int64_t HeldTensor::elements() const { return c10::multiply_integers(shape); }

std::vector<HeldTensor> exchange_slices(const Ranks& ranks,
                                        std::span<const ShardedTensorView> views) {
  require_same_tensors(ranks, views);
  const std::vector<Row> rows = gather_rows(ranks, views);
  std::vector<HeldTensor> tensors;
  tensors.reserve(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    std::map<int64_t, HeldSlice> by_first_holder;
    for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
      const Row& row = rows[static_cast<std::size_t>(rank) * views.size() + i];
      add_holder(by_first_holder, row, rank, views[i].name);
    }
    HeldTensor tensor{
        .name = views[i].name, .dtype = views[i].dtype, .shape = views[i].shape, .slices = {}};
    for (auto& [first, slice] : by_first_holder) tensor.slices.push_back(std::move(slice));
    std::sort(tensor.slices.begin(), tensor.slices.end(),
              [](const auto& left, const auto& right) { return left.begin < right.begin; });
    require_cover(tensor);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace phalanx
