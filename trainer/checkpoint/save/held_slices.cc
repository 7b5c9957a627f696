// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/held_slices.h"

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
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
  TensorPart part;
  int64_t first_holder;  ///< Tells ranges apart.
  bool counts;           ///< This rank is among the holders.
};
constexpr size_t kNumbersOfRow = 5;

Row row_of(const ShardedTensorView& view, int64_t rank) {
  const auto& replicas = view.replicas;
  return {.part = without_needless_box(view.shape, view.part()),
          .first_holder = *std::min_element(replicas.begin(), replicas.end()),
          .counts = std::find(replicas.begin(), replicas.end(), rank) != replicas.end()};
}

/// Boxes are exchanged for those tensors alone of which some rank holds one: by far most have none.
class Boxes {
 public:
  Boxes(const Ranks& ranks, std::span<const ShardedTensorView> views,
        const std::vector<bool>& has_boxes)
      : views_(views), places_(views.size()) {
    std::vector<int64_t> mine;
    for (size_t i = 0; i < views.size(); ++i) {
      places_[i] = mine.size();
      if (!has_boxes[i]) continue;
      const auto box = row_of(views[i], ranks.rank()).part.box.value_or(whole_box(views[i].shape));
      mine.insert(mine.end(), box.offsets.begin(), box.offsets.end());
      mine.insert(mine.end(), box.sizes.begin(), box.sizes.end());
    }
    numbers_of_rank_ = mine.size();
    if (!mine.empty()) numbers_ = all_gather_numbers(ranks, mine);
  }

  TensorBox box(size_t rank, size_t view) const {
    const auto dimensions = static_cast<std::ptrdiff_t>(views_[view].shape.size());
    const auto offsets =
        numbers_.begin() + static_cast<std::ptrdiff_t>(rank * numbers_of_rank_ + places_[view]);
    const auto sizes = offsets + dimensions;
    return {.offsets = {offsets, sizes}, .sizes = {sizes, sizes + dimensions}};
  }

 private:
  std::span<const ShardedTensorView> views_;
  std::vector<size_t> places_;  ///< Where a rank's numbers of a view begin.
  size_t numbers_of_rank_ = 0;
  std::vector<int64_t> numbers_;  ///< Rank after rank.
};

/// What every rank has sent of every view.
class Rows {
 public:
  Rows(const Ranks& ranks, std::span<const ShardedTensorView> views) : views_(views.size()) {
    std::vector<int64_t> mine;
    mine.reserve(views.size() * kNumbersOfRow);
    for (const ShardedTensorView& view : views) {
      const Row row = row_of(view, ranks.rank());
      mine.insert(mine.end(), {row.part.begin, row.part.end, row.first_holder, row.counts ? 1 : 0,
                               row.part.box ? 1 : 0});
    }
    numbers_ = all_gather_numbers(ranks, mine);
    std::vector<bool> has_boxes(views_);
    for (size_t i = 0; i < numbers_.size() / kNumbersOfRow; ++i) {
      if (has_box(i)) has_boxes[i % views_] = true;
    }
    boxes_.emplace(ranks, views, has_boxes);
  }

  Row row(size_t rank, size_t view) const {
    const size_t index = rank * views_ + view;
    const int64_t* const numbers = numbers_.data() + index * kNumbersOfRow;
    Row row{.part = {.box = std::nullopt, .begin = numbers[0], .end = numbers[1]},
            .first_holder = numbers[2],
            .counts = numbers[3] == 1};
    if (has_box(index)) row.part.box = boxes_->box(rank, view);
    return row;
  }

 private:
  bool has_box(size_t index) const { return numbers_[index * kNumbersOfRow + 4] == 1; }

  size_t views_;
  std::vector<int64_t> numbers_;  ///< Rank after rank.
  std::optional<Boxes> boxes_;
};

void add_holder(std::map<int64_t, HeldSlice>& slices, const Row& row, int64_t rank,
                const std::string& name) {
  const TensorPart& part = row.part;
  if (!row.counts || part.begin == part.end) return;
  HeldSlice& slice =
      slices
          .try_emplace(
              row.first_holder,
              HeldSlice{.begin = part.begin, .end = part.end, .holders = {}, .box = part.box})
          .first->second;
  if (slice.part() != part) {
    throw std::logic_error(
        fmt::format("rank {} holds another range of '{}' than rank {}, whose replica it is", rank,
                    name, row.first_holder));
  }
  slice.holders.push_back(rank);
}

bool comes_before(const HeldSlice& left, const HeldSlice& right) {
  if (left.box && right.box && *left.box != *right.box) {
    return std::tie(left.box->offsets, left.box->sizes) <
           std::tie(right.box->offsets, right.box->sizes);
  }
  return std::pair(left.box.has_value(), left.begin) <
         std::pair(right.box.has_value(), right.begin);
}

void require_boxes_cover(const HeldTensor& tensor) {
  std::vector<BoxRange> parts;
  for (const HeldSlice& slice : tensor.slices) parts.push_back(slice.part().in(tensor.shape));
  const std::string fault = fault_of_cover(tensor.shape, parts);
  if (fault.empty()) return;
  throw std::logic_error(fmt::format("the ranks' boxes of '{}' {}", tensor.name, fault));
}

void require_cover(const HeldTensor& tensor) {
  if (tensor.has_boxes()) return require_boxes_cover(tensor);
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

bool HeldTensor::has_boxes() const {
  return std::any_of(slices.begin(), slices.end(),
                     [](const HeldSlice& slice) { return slice.box.has_value(); });
}

std::vector<HeldTensor> exchange_slices(const Ranks& ranks,
                                        std::span<const ShardedTensorView> views) {
  require_same_tensors(ranks, views);
  const Rows rows(ranks, views);
  std::vector<HeldTensor> tensors;
  tensors.reserve(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    std::map<int64_t, HeldSlice> by_first_holder;
    for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
      add_holder(by_first_holder, rows.row(static_cast<std::size_t>(rank), i), rank, views[i].name);
    }
    HeldTensor tensor{
        .name = views[i].name, .dtype = views[i].dtype, .shape = views[i].shape, .slices = {}};
    for (auto& [first, slice] : by_first_holder) tensor.slices.push_back(std::move(slice));
    std::sort(tensor.slices.begin(), tensor.slices.end(), comes_before);
    require_cover(tensor);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace phalanx
