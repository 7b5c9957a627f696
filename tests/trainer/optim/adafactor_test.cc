// SPDX-License-Identifier: Apache-2.0
// Adafactor on ranks that hold parts of parameters, cut anywhere, is that of one rank with all.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/registered.h"
#include "trainer/api/optimizer.h"

namespace phalanx {
namespace {

constexpr int64_t kSteps = 10;

using Shape = std::vector<int64_t>;
const std::vector<Shape> kShapes{{4, 6}, {1, 9}, {9, 1}, {3, 2, 5}, {2, 1, 3, 4}, {7}, {}};

at::Tensor wave(const Shape& shape, double phase) {
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  return (at::arange(size, at::kDouble) * 0.7 + phase).sin().view(shape);
}

/// Which ranks hold the same elements as `rank`, and which these are.
struct Held {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<int64_t> replicas;
};
using Cut = std::function<Held(int64_t rank, int64_t elements)>;

class Training {
 public:
  Training(const Ranks& ranks, const Cut& cut) : optimizer_(make()) {
    ParameterGroup decay{.label = "decay", .weight_decay = true, .parameters = {}};
    ParameterGroup no_decay{.label = "no decay", .weight_decay = false, .parameters = {}};
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      const at::Tensor whole = wave(kShapes[i], static_cast<double>(i));
      Held held = cut(ranks.rank(), whole.numel());
      const at::Tensor part =
          whole.flatten().slice(0, held.begin, held.end).clone().requires_grad_();
      parameters_.push_back({.name = std::to_string(i),
                             .tensor = part,
                             .shard = ShardRange{.shape = kShapes[i],
                                                 .begin = held.begin,
                                                 .end = held.end,
                                                 .replicas = std::move(held.replicas)}});
      (kShapes[i].size() < 2 ? no_decay : decay).parameters.push_back(parameters_.back());
    }
    optimizer_->join(ranks);
    optimizer_->bind({decay, no_decay});
  }

  void step(int64_t number) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const ShardRange& shard = *parameters_[i].shard;
      // Gradients so large that updates are clipped, and so small; the third has none at times.
      const double size = number % 2 == 0 ? 100 : 0.001;
      at::Tensor gradient;
      if (i != 2 || number % 3 != 0) {
        gradient = wave(shard.shape, static_cast<double>(number) * 10 + static_cast<double>(i))
                       .flatten()
                       .slice(0, shard.begin, shard.end)
                       .mul(size);
      }
      parameters_[i].tensor.mutable_grad() = gradient;
    }
    optimizer_->step_by(1 / static_cast<double>(number));
  }

  std::vector<ShardedTensorView> views() const {
    std::vector<ShardedTensorView> views;
    for (const NamedParameter& parameter : parameters_) views.push_back(view_of(parameter));
    for (auto& view : optimizer_->state()) views.push_back(std::move(view));
    return views;
  }

 private:
  static std::shared_ptr<Optimizer> make() {
    return make_registered<Optimizer>("adafactor", "{lr: 0.1, weight_decay: 0.1}");
  }

  std::shared_ptr<Optimizer> optimizer_;
  std::vector<NamedParameter> parameters_;
};

void train_alike(const Ranks& ranks, const Cut& cut, const std::string& how) {
  Training alone(Ranks(), [](int64_t, int64_t elements) { return Held{0, elements, {0}}; });
  Training together(ranks, cut);
  for (int64_t step = 1; step <= kSteps; ++step) {
    alone.step(step);
    together.step(step);
  }
  std::map<std::string, at::Tensor> wholes;
  for (const auto& view : alone.views()) wholes[view.name] = view.local.flatten();
  for (const auto& view : together.views()) {
    const at::Tensor expected = wholes.at(view.name).slice(0, view.begin, view.end);
    if (expected.numel() == 0) continue;
    const double off = view.local.flatten().sub(expected).abs().max().item().toDouble();
    require(off < 1e-12, fmt::format("{}: {} differs by {}", how, view.name, off));
  }
}

// One rank in three has nothing of what is small.
Held sharded(int64_t rank, int64_t elements) {
  const int64_t size = std::max<int64_t>(elements * 2 / 5, 4);
  const auto bound = [&](int64_t of) { return std::min(of * size, elements); };
  return {bound(rank), rank == 2 ? elements : bound(rank + 1), {rank}};
}

Held copied(int64_t, int64_t elements) { return {0, elements, {0, 1, 2}}; }

// Two copies, each cut into two.
Held hybrid(int64_t rank, int64_t elements) {
  const int64_t middle = elements / 3;
  const int64_t half = rank % 2;
  return {half == 0 ? 0 : middle, half == 0 ? middle : elements, {half, half + 2}};
}

TEST(Adafactor, IsTheSameInShardsAndInCopies) {
  const auto outcome = in_ranks(3, [](World& world) {
    train_alike(world.ranks(), sharded, "sharded");
    train_alike(world.ranks(), copied, "copied");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Adafactor, IsTheSameInCopiesOfShards) {
  const auto outcome =
      in_ranks(4, [](World& world) { train_alike(world.ranks(), hybrid, "hybrid"); });
  EXPECT_EQ(outcome.message, "");
}

// What makes it worth its name: a number a row and a column.
TEST(Adafactor, KeepsRowsAndColumnsOfAMatrix) {
  const auto optimizer = make_registered<Optimizer>("adafactor");
  const at::Tensor matrix = wave({4, 6}, 0).requires_grad_();
  const at::Tensor vector = wave({7}, 0).requires_grad_();
  optimizer->bind({{.label = "all", .parameters = {{"m", matrix}, {"v", vector}}}});
  std::map<std::string, Shape> shapes;
  for (const auto& view : optimizer->state()) shapes[view.name] = view.shape;
  EXPECT_EQ(shapes, (std::map<std::string, Shape>{{"m.row_var", {4, 1}},
                                                  {"m.col_var", {1, 6}},
                                                  {"m.step", {}},
                                                  {"v.variance", {7}},
                                                  {"v.step", {}}}));
}

}  // namespace
}  // namespace phalanx
