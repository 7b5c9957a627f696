// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/tensor_box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace phalanx {
namespace {

using testing::ElementsAre;

using Shape = std::vector<int64_t>;

TEST(TensorBox, ARangeIsMadeOfFewBoxesInItsOrder) {
  const TensorBox box{.offsets = {10, 20}, .sizes = {4, 3}};
  EXPECT_THAT(boxes_of({.box = box, .begin = 0, .end = 12}), ElementsAre(box));
  EXPECT_THAT(boxes_of({.box = box, .begin = 2, .end = 10}),
              ElementsAre(TensorBox{{10, 22}, {1, 1}}, TensorBox{{11, 20}, {2, 3}},
                          TensorBox{{13, 20}, {1, 1}}));
  EXPECT_THAT(boxes_of({.box = box, .begin = 4, .end = 5}),
              ElementsAre(TensorBox{{11, 21}, {1, 1}}));
  EXPECT_THAT(boxes_of({.box = box, .begin = 3, .end = 3}), ElementsAre());
  EXPECT_THAT(boxes_of({.box = whole_box(Shape{}), .begin = 0, .end = 1}),
              ElementsAre(TensorBox{}));
  EXPECT_THAT(boxes_of({.box = whole_box(Shape{0, 3}), .begin = 0, .end = 0}), ElementsAre());
}

TEST(TensorBox, EveryRangeOfThreeDimensionsIsCoveredInOrder) {
  const TensorBox box{.offsets = {1, 2, 3}, .sizes = {3, 2, 4}};
  for (int64_t begin = 0; begin <= 24; ++begin) {
    for (int64_t end = begin; end <= 24; ++end) {
      int64_t place = begin;
      for (const TensorBox& part : boxes_of({.box = box, .begin = begin, .end = end})) {
        ASSERT_EQ(place_in(box, part), place);
        place += part.elements();
      }
      ASSERT_EQ(place, end);
    }
  }
}

TEST(TensorBox, RangesShareWhatIsInBoth) {
  const Shape shape{3, 4};
  const TensorPart columns{.box = TensorBox{{0, 1}, {3, 2}}, .begin = 0, .end = 6};
  const TensorPart middle{.box = {}, .begin = 2, .end = 8};
  EXPECT_THAT(shared_boxes(columns.in(shape), middle.in(shape)),
              ElementsAre(TensorBox{{0, 2}, {1, 1}}, TensorBox{{1, 1}, {1, 2}}));
  const TensorPart last{.box = TensorBox{{0, 3}, {3, 1}}, .begin = 0, .end = 3};
  EXPECT_THAT(shared_boxes(columns.in(shape), last.in(shape)), ElementsAre());
}

TEST(TensorBox, ABoxThatIsContiguousIsARange) {
  const Shape shape{4, 3, 2};
  const auto range = [&](const TensorBox& box) {
    return without_needless_box(shape, {.box = box, .begin = 1, .end = box.elements()});
  };
  EXPECT_EQ(range({{0, 0, 0}, {4, 3, 2}}), (TensorPart{{}, 1, 24}));
  EXPECT_EQ(range({{1, 0, 0}, {2, 3, 2}}), (TensorPart{{}, 7, 18}));
  EXPECT_EQ(range({{1, 1, 0}, {1, 2, 2}}), (TensorPart{{}, 9, 12}));
  const TensorBox columns{{0, 1, 0}, {4, 2, 2}};
  EXPECT_EQ(range(columns), (TensorPart{columns, 1, 16}));
  EXPECT_EQ(without_needless_box(shape, {.box = TensorBox{{2, 0, 1}, {2, 0, 1}}}).begin, 0);
  EXPECT_EQ(without_needless_box(Shape{}, {.box = TensorBox{}, .begin = 0, .end = 1}),
            (TensorPart{{}, 0, 1}));
}

TEST(TensorBox, LiesInATensorOrNot) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Shape shape{4, 3};
  EXPECT_TRUE(lies_in({{1, 0}, {3, 3}}, shape));
  EXPECT_TRUE(lies_in({{4, 3}, {0, 0}}, shape));
  for (const TensorBox& box : {TensorBox{{1, 0}, {4, 3}},
                               {{-1, 0}, {1, 1}},
                               {{0, 0}, {-1, 3}},
                               {{0}, {4}},
                               {{0, 0}, {4}},
                               {{1, 0}, {kMost, 3}},
                               {{kMost, 0}, {kMost, 3}}}) {
    EXPECT_FALSE(lies_in(box, shape));
  }
}

TEST(TensorBox, WhatKeepsPartsFromMakingUpATensorIsSaid) {
  const Shape shape{4, 6};
  const auto fault = [&](const std::vector<TensorPart>& parts) {
    std::vector<BoxRange> ranges;
    for (const TensorPart& part : parts) ranges.push_back(part.in(shape));
    return fault_of_cover(shape, ranges);
  };
  const TensorPart left{.box = TensorBox{{0, 0}, {4, 2}}, .begin = 0, .end = 8};
  const TensorPart right{.box = TensorBox{{0, 2}, {4, 4}}, .begin = 0, .end = 16};
  TensorPart wider = right;
  wider.box = TensorBox{{0, 1}, {4, 4}};
  EXPECT_EQ(fault({left, right}), "");
  EXPECT_EQ(fault({right, left}), "");
  EXPECT_EQ(fault({left, wider}), "overlap");
  EXPECT_EQ(fault({left}), "hold 8 of its 24 elements");
  EXPECT_EQ(fault({left, {right.box, 0, 7}, {right.box, 8, 16}}), "hold 23 of its 24 elements");
  EXPECT_EQ(fault({left, right, right}), "overlap");
  // Rows that are a range of the whole tensor, beside columns of the other rows.
  EXPECT_EQ(
      fault({{{}, 0, 12}, {TensorBox{{2, 0}, {2, 3}}, 0, 6}, {TensorBox{{2, 3}, {2, 3}}, 0, 6}}),
      "");
}

TEST(TensorBox, ManyPartsEndInTime) {
  // A box of one element each, in which no dimension tells many of them apart.
  const Shape shape{2, 100'000};
  std::vector<BoxRange> columns;
  for (int64_t i = 0; i < shape[1]; ++i) {
    columns.push_back({.box = {{0, i}, {2, 1}}, .begin = 0, .end = 2});
  }
  EXPECT_EQ(fault_of_cover(shape, columns), "");
  Shape small(18, 2);
  std::vector<BoxRange> corners;
  for (int64_t i = 0; i < (int64_t{1} << 17); ++i) {
    BoxRange corner{.box = whole_box(small), .begin = 0, .end = 2};
    for (std::size_t d = 0; d + 1 < small.size(); ++d) {
      corner.box.offsets[d] = i >> d & 1;
      corner.box.sizes[d] = 1;
    }
    corners.push_back(std::move(corner));
  }
  EXPECT_EQ(fault_of_cover(small, corners), "are too many to compare");
}

}  // namespace
}  // namespace phalanx
