// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/differentiable.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>

#include "tests/tensors.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/ranks/refused.h"

namespace phalanx {
namespace {

constexpr double kStep = 1e-6;
constexpr double kLimit = 1e-6;

using Function = std::function<at::Tensor(const Ranks& ranks, const at::Tensor& input)>;

// A loss that weighs each element of the result otherwise, on each rank otherwise, and not
// linearly.
at::Tensor loss_of(const at::Tensor& result, const Ranks& ranks) {
  const at::Tensor weights = tensors::arange(result.numel(), at::kDouble)
                                 .add(1.0 + 0.5 * static_cast<double>(ranks.rank()))
                                 .view(result.sizes());
  return result.sin().mul(weights).sum();
}

// The sum of all ranks' losses, on every rank.
double sum_of_losses(const Function& function, const Ranks& ranks, const at::Tensor& input) {
  const at::Tensor loss = loss_of(function(ranks, input), ranks).detach();
  ranks.all_reduce(loss);
  return loss.item<double>();
}

// Central differences of each element of each rank's input, which all ranks compute together.
at::Tensor by_differences(const Function& function, const Ranks& ranks, const at::Tensor& input) {
  at::Tensor gradient = tensors::zeros(input.sizes(), input.options());
  for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
    for (int64_t i = 0; i < input.numel(); ++i) {
      const at::Tensor moved = input.clone();
      const at::Tensor element = moved.view(-1)[i];
      const bool is_mine = rank == ranks.rank();
      if (is_mine) element.add_(kStep);
      const double above = sum_of_losses(function, ranks, moved);
      if (is_mine) element.sub_(2 * kStep);
      const double below = sum_of_losses(function, ranks, moved);
      if (is_mine) gradient.view(-1)[i].fill_((above - below) / (2 * kStep));
    }
  }
  return gradient;
}

void require_close(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  require(a.sizes() == b.sizes(), what + ", the shape");
  require(a.sub(b).abs().max().item<double>() < kLimit, what);
}

// The first derivative against differences of the loss, the second against those of the first.
void check_gradients(const std::string& name, const Function& function, const Ranks& ranks,
                     at::IntArrayRef sizes) {
  at::Tensor input = tensors::arange(tensors::zeros(sizes).numel(), at::kDouble)
                         .mul(0.3)
                         .add(static_cast<double>(ranks.rank()))
                         .view(sizes);
  const Function gradient_of = [&](const Ranks&, const at::Tensor& at) {
    const at::Tensor leaf = at.requires_grad() ? at : at.detach().requires_grad_();
    return torch::autograd::grad({loss_of(function(ranks, leaf), ranks)}, {leaf}, {},
                                 /*retain_graph=*/true, /*create_graph=*/true)
        .front();
  };
  input.requires_grad_();
  require_close(gradient_of(ranks, input).detach(), by_differences(function, ranks, input.detach()),
                name + ", the gradient");
  loss_of(gradient_of(ranks, input), ranks).backward();
  require_close(input.grad(), by_differences(gradient_of, ranks, input.detach()),
                name + ", the second derivative");
}

void check_all(const Ranks& ranks) {
  namespace d = differentiable;
  const int64_t world_size = ranks.world_size();
  check_gradients("all_gather", d::all_gather, ranks, {2, 3});
  check_gradients("all_gather of a number", d::all_gather, ranks, {});
  check_gradients("all_to_all", d::all_to_all, ranks, {2 * world_size, 2});
  for (const auto reduction : {Reduction::sum, Reduction::average}) {
    const auto by = [&](const auto& function) {
      return [=](const Ranks& all, const at::Tensor& input) {
        return function(all, input, reduction);
      };
    };
    check_gradients("all_reduce", by(d::all_reduce), ranks, {2, 2});
    check_gradients("reduce_scatter", by(d::reduce_scatter), ranks, {world_size, 2});
  }
}

TEST(Differentiable, GradientsAreThoseOfTheSumOfAllLosses) {
  EXPECT_EQ(in_ranks(3, [](World& world) { check_all(world.ranks()); }), RankOutcome{});
}

TEST(Differentiable, WorksInAWorldOfOne) { check_all(Ranks()); }

TEST(Differentiable, GivesWhatTheCollectivesGive) {
  const auto outcome = in_ranks(2, [](World& world) {
    namespace d = differentiable;
    const Ranks& ranks = world.ranks();
    const double rank = static_cast<double>(ranks.rank());
    const at::Tensor transposed = tensors::arange(4, at::kDouble).view({2, 2}).t().add(10 * rank);
    require(!transposed.is_contiguous(), "a tensor in another order");
    const at::Tensor gathered = d::all_gather(ranks, transposed);
    require(gathered.equal(
                at::tensor({0., 2., 1., 3., 10., 12., 11., 13.}).to(at::kDouble).view({4, 2})),
            "all_gather");
    require(d::all_reduce(ranks, transposed).equal(transposed.add(transposed).add(10 - 20 * rank)),
            "all_reduce");
    require(transposed[0][1].item<double>() == 2 + 10 * rank, "the input stays");
    require(d::reduce_scatter(ranks, transposed, Reduction::average)
                .equal(tensors::arange(4, at::kDouble)
                           .view({2, 2})
                           .t()
                           .add(5)
                           .slice(0, ranks.rank(), ranks.rank() + 1)),
            "reduce_scatter");
    const at::Tensor exchanged = d::all_to_all(ranks, at::tensor({rank, rank + 0.5}));
    require(exchanged.equal(at::tensor({0.5 * rank, 1 + 0.5 * rank})), "all_to_all");
    require(d::all_gather(ranks, tensors::zeros({0, 3})).sizes() == at::IntArrayRef({0, 3}),
            "of empty tensors");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Differentiable, RefusesWhatDoesNotFit) {
  namespace d = differentiable;
  const Ranks alone;
  EXPECT_EQ(refused([&] { d::all_reduce(alone, tensors::zeros({1}), Reduction::maximum); }),
            "all-reduce: autograd goes through a sum or an average, and no other reduction");
  EXPECT_EQ(refused([&] { d::all_to_all(alone, tensors::zeros({})); }),
            "all-to-all: the first dimension is cut into a part for each of 1 ranks, and the "
            "tensor has no dimension");
  const auto outcome = in_ranks(2, [](World& world) {
    require(refused([&] {
              d::reduce_scatter(world.ranks(), tensors::zeros({3, 2}));
            }) ==
                "reduce-scatter: the first dimension is cut into a part for each of 2 ranks, and "
                "the tensor has 3 rows",
            "three rows for two ranks");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

}  // namespace
}  // namespace phalanx
