// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/tensors_in.h"

#include <ATen/core/Formatting.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string_view>

namespace phalanx {

struct Cache {
  at::Tensor keys;
  std::vector<at::Tensor> values;
  int64_t length = 0;

  auto tensors() { return std::tie(keys, values); }
};

struct Shape {
  int64_t rows = 0;
};
template <>
inline constexpr bool kHoldsNoTensors<Shape> = true;

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Optional = std::optional<at::Tensor>;

at::Tensor number(double value) { return at::scalar_tensor(value); }

std::vector<double> numbers(const std::vector<at::Tensor>& tensors) {
  std::vector<double> values;
  for (const at::Tensor& tensor : tensors) {
    values.push_back(tensor.defined() ? tensor.item<double>() : -1);
  }
  return values;
}

// What is taken; twice as much is put back, taken again and halved: it must be the same.
template <class T>
std::vector<double> taken_from(T value) {
  const std::vector<double> first = numbers(take_tensors(value));
  std::vector<at::Tensor> doubled;
  for (const double each : first) doubled.push_back(each < 0 ? at::Tensor() : number(2 * each));
  put_tensors(value, doubled);
  std::vector<double> second = numbers(take_tensors(value));
  for (double& each : second) each = each < 0 ? each : each / 2;
  EXPECT_EQ(second, first);
  return first;
}

TEST(TensorsIn, AreTakenFromLeftToRight) {
  EXPECT_THAT(taken_from(number(3)), ElementsAre(3));
  EXPECT_THAT(taken_from(at::Tensor()), ElementsAre(-1));
  EXPECT_THAT(taken_from(Optional(number(3))), ElementsAre(3));
  EXPECT_THAT(taken_from(Optional()), IsEmpty());
  EXPECT_THAT(taken_from(std::vector{number(1), number(2)}), ElementsAre(1, 2));
  EXPECT_THAT(taken_from(std::vector<Optional>{number(1), std::nullopt, number(2)}),
              ElementsAre(1, 2));
  EXPECT_THAT(taken_from(std::array{number(1), number(2)}), ElementsAre(1, 2));
  EXPECT_THAT(taken_from(std::pair(number(1), Optional(number(2)))), ElementsAre(1, 2));
  EXPECT_THAT(taken_from(std::tuple(number(1), 7, std::vector{number(2)}, true,
                                    std::optional(std::tuple(number(3), std::string("causal"))))),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(taken_from(Cache{.keys = number(1), .values = {number(2), number(3)}, .length = 4}),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(taken_from(std::tuple(3, 2.5, std::vector<bool>{true}, Shape{.rows = 2})), IsEmpty());
}

TEST(TensorsIn, LeaveTheRestOfTheValue) {
  std::tuple value(number(1), 7, Cache{.keys = number(2), .values = {number(3)}, .length = 4});
  std::vector<at::Tensor> tensors = take_tensors(value);
  EXPECT_FALSE(std::get<0>(value).defined());
  EXPECT_EQ(std::get<1>(value), 7);
  EXPECT_EQ(std::get<2>(value).length, 4);
  EXPECT_EQ(std::get<2>(value).values.size(), 1U);
  put_tensors(value, std::move(tensors));
  EXPECT_EQ(std::get<2>(value).values.front().item<double>(), 3);
}

TEST(TensorsIn, AreAsManyAsWereTaken) {
  std::vector<at::Tensor> two(2);
  EXPECT_THROW(put_tensors(two, {number(1)}), std::logic_error);
  EXPECT_THROW(put_tensors(two, {number(1), number(2), number(3)}), std::logic_error);
}

// What hooks could not see does not compile: UNIT's call asserts this.
static_assert(kIsVisible<std::tuple<at::Tensor, std::vector<std::optional<at::Tensor>>, Cache>>);
static_assert(kIsVisible<at::ScalarType> && kIsVisible<Shape> && kIsVisible<std::nullopt_t>);
static_assert(!kIsVisible<Cache*> && !kIsVisible<std::shared_ptr<Cache>>);
static_assert(!kIsVisible<std::reference_wrapper<at::Tensor>> && !kIsVisible<const at::Tensor*>);
static_assert(!kIsVisible<at::TensorList> && !kIsVisible<std::string_view>);
static_assert(!kIsVisible<std::function<at::Tensor()>>);
static_assert(!kIsVisible<std::tuple<at::Tensor, std::vector<std::shared_ptr<Cache>>>>);

}  // namespace
}  // namespace phalanx
