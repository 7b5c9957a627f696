// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/tensor_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace phalanx {
namespace {

constexpr const char* kTooMany = "are too many to compare";

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// Appends the boxes of a range of `box`, whose dimensions before `dimension` have one index each.
void append_boxes(TensorBox box, std::size_t dimension, int64_t begin, int64_t end,
                  std::vector<TensorBox>& boxes) {
  if (begin >= end) return;
  if (dimension == box.sizes.size()) {
    boxes.push_back(std::move(box));
    return;
  }
  const int64_t row = product(std::span<const int64_t>(box.sizes).subspan(dimension + 1));
  const auto rows = [&](int64_t first, int64_t count) {
    TensorBox some = box;
    some.offsets[dimension] += first;
    some.sizes[dimension] = count;
    return some;
  };
  int64_t first = begin / row;
  const int64_t last = end / row;
  if (const int64_t before = begin % row; before != 0) {
    const int64_t stop = first == last ? end % row : row;
    append_boxes(rows(first, 1), dimension + 1, before, stop, boxes);
    if (first == last) return;
    ++first;
  }
  if (first < last) boxes.push_back(rows(first, last - first));
  append_boxes(rows(last, 1), dimension + 1, 0, end % row, boxes);
}

std::optional<TensorBox> intersection(const TensorBox& left, const TensorBox& right) {
  TensorBox shared = left;
  for (std::size_t i = 0; i < left.sizes.size(); ++i) {
    const int64_t begin = std::max(left.offsets[i], right.offsets[i]);
    const int64_t end =
        std::min(left.offsets[i] + left.sizes[i], right.offsets[i] + right.sizes[i]);
    if (begin >= end) return std::nullopt;
    shared.offsets[i] = begin;
    shared.sizes[i] = end - begin;
  }
  return shared;
}

bool overlap(const TensorBox& left, const TensorBox& right) {
  for (std::size_t i = 0; i < left.sizes.size(); ++i) {
    if (left.offsets[i] >= right.offsets[i] + right.sizes[i]) return false;
    if (right.offsets[i] >= left.offsets[i] + left.sizes[i]) return false;
  }
  return true;
}

/// The dimension along which most boxes differ in where they begin.
std::size_t telling_dimension(std::span<const TensorBox> boxes) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t dimension = 0; dimension < boxes.front().offsets.size(); ++dimension) {
    std::set<int64_t> offsets;
    for (const TensorBox& box : boxes) offsets.insert(box.offsets[dimension]);
    if (offsets.size() > most) {
      best = dimension;
      most = offsets.size();
    }
  }
  return best;
}

/// Sorted along one dimension, a box is compared with those alone that begin before it ends there.
std::string fault_of_boxes(std::vector<TensorBox> boxes) {
  constexpr int64_t kMostComparisons = int64_t{1} << 24;
  if (boxes.empty() || boxes.front().sizes.empty()) return boxes.size() > 1 ? "overlap" : "";
  const std::size_t along = telling_dimension(boxes);
  std::sort(boxes.begin(), boxes.end(), [along](const TensorBox& left, const TensorBox& right) {
    return left.offsets[along] < right.offsets[along];
  });
  int64_t comparisons = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const int64_t end = boxes[i].offsets[along] + boxes[i].sizes[along];
    for (std::size_t j = i + 1; j < boxes.size() && boxes[j].offsets[along] < end; ++j) {
      if (overlap(boxes[i], boxes[j])) return "overlap";
      if (++comparisons > kMostComparisons) return kTooMany;
    }
  }
  return "";
}

}  // namespace

int64_t TensorBox::elements() const { return product(sizes); }

TensorBox whole_box(std::span<const int64_t> shape) {
  return {.offsets = std::vector<int64_t>(shape.size()), .sizes = {shape.begin(), shape.end()}};
}

bool lies_in(const TensorBox& box, std::span<const int64_t> shape) {
  if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (box.offsets[i] < 0 || box.offsets[i] > shape[i]) return false;
    if (box.sizes[i] < 0 || box.sizes[i] > shape[i] - box.offsets[i]) return false;
  }
  return true;
}

int64_t place_in(const TensorBox& outer, const TensorBox& inner) {
  int64_t place = 0;
  for (std::size_t i = 0; i < outer.sizes.size(); ++i) {
    place = place * outer.sizes[i] + inner.offsets[i] - outer.offsets[i];
  }
  return place;
}

std::vector<TensorBox> boxes_of(const BoxRange& range) {
  std::vector<TensorBox> boxes;
  append_boxes(range.box, 0, range.begin, range.end, boxes);
  return boxes;
}

std::vector<TensorBox> shared_boxes(const BoxRange& first, const BoxRange& second) {
  std::vector<TensorBox> shared;
  const std::vector<TensorBox> others = boxes_of(second);
  for (const TensorBox& box : boxes_of(first)) {
    for (const TensorBox& other : others) {
      if (auto both = intersection(box, other)) shared.push_back(*std::move(both));
    }
  }
  return shared;
}

BoxRange TensorPart::in(std::span<const int64_t> shape) const {
  return {.box = box ? *box : whole_box(shape), .begin = begin, .end = end};
}

TensorPart without_needless_box(std::span<const int64_t> shape, TensorPart part) {
  if (!part.box) return part;
  const TensorBox& box = *part.box;
  std::size_t dimension = shape.size();
  while (dimension > 0 && box.sizes[dimension - 1] == shape[dimension - 1]) --dimension;
  // All of the dimensions behind; some indices of this one; so one index of each before it.
  for (std::size_t i = 0; i + 1 < dimension; ++i) {
    if (box.sizes[i] > 1) return part;
  }
  const int64_t before = part.begin == part.end ? 0 : place_in(whole_box(shape), box);
  return {.box = std::nullopt, .begin = before + part.begin, .end = before + part.end};
}

std::string fault_of_cover(std::span<const int64_t> shape, std::span<const BoxRange> parts) {
  constexpr std::size_t kMostBoxes = std::size_t{1} << 17;
  const int64_t elements = product(shape);
  std::vector<TensorBox> boxes;
  int64_t held = 0;
  for (const BoxRange& part : parts) {
    const int64_t size = part.end - part.begin;
    if (size > elements - held) return "overlap";
    held += size;
    for (TensorBox& box : boxes_of(part)) boxes.push_back(std::move(box));
    if (boxes.size() > kMostBoxes) return kTooMany;
  }
  if (std::string fault = fault_of_boxes(std::move(boxes)); !fault.empty()) return fault;
  return held == elements ? "" : fmt::format("hold {} of its {} elements", held, elements);
}

}  // namespace phalanx
