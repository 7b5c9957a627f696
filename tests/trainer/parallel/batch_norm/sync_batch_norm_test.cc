// SPDX-License-Identifier: Apache-2.0
// Batch normalization of real ranks, against LibTorch's over their joined batch.

#include "trainer/parallel/batch_norm/sync_batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/uncounted_pass.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"

namespace phalanx::batch_norm {
namespace {

constexpr double kEps = 1e-5;
constexpr int64_t kChannels = 5;

/// What is normalized, and by what.
struct Case {
  std::vector<int64_t> samples;  ///< By rank.
  std::vector<int64_t> places;   ///< The dimensions behind the channels.
  bool has_weight = true;
  bool has_bias = true;
  bool has_running = true;
  double momentum = 0.1;
  bool channels_last = false;
  at::ScalarType dtype = at::kDouble;
  double tolerance = 1e-10;

  std::string name() const {
    return fmt::format("[{}] x {} x [{}], {}{}{}momentum {}{}, {}", fmt::join(samples, ", "),
                       kChannels, fmt::join(places, ", "), has_weight ? "weight, " : "",
                       has_bias ? "bias, " : "", has_running ? "running statistics, " : "",
                       momentum, channels_last ? ", channels last" : "", c10::toString(dtype));
  }
};

at::Tensor wave(at::IntArrayRef shape, double step) {
  int64_t numel = 1;
  for (const int64_t size : shape) numel *= size;
  return at::arange(numel, at::kDouble).mul(step).sin().view(shape);
}

/// Channels far from 0, by distances of their own.
at::Tensor input_of(int64_t samples, const std::vector<int64_t>& places) {
  std::vector<int64_t> shape{samples, kChannels};
  shape.insert(shape.end(), places.begin(), places.end());
  std::vector<int64_t> channels(shape.size(), 1);
  channels[1] = kChannels;
  return wave(shape, 0.73) + at::arange(kChannels, at::kDouble).mul(10).view(channels);
}

/// Everything that at::batch_norm gets beside its input, and leaves behind.
struct Parts {
  explicit Parts(const Case& each) {
    const auto options = at::TensorOptions(each.dtype == at::kDouble ? at::kDouble : at::kFloat);
    if (each.has_weight) {
      weight = at::linspace(0.5, 2, kChannels, options).requires_grad_();
    }
    if (each.has_bias) bias = at::linspace(-1, 1, kChannels, options).requires_grad_();
    if (each.has_running) {
      running_mean = at::linspace(0, 3, kChannels, options);
      running_var = at::linspace(1, 2, kChannels, options);
    }
  }

  at::Tensor run(const at::Tensor& input, double momentum) const {
    return at::batch_norm(input, weight, bias, running_mean, running_var, /*training=*/true,
                          momentum, kEps, /*cudnn_enabled=*/false);
  }

  at::Tensor weight, bias, running_mean, running_var;
};

void require_near(const at::Tensor& found, const at::Tensor& expected, double tolerance,
                  const std::string& what) {
  require(found.sizes() == expected.sizes(), what + ": its shape");
  if (found.numel() == 0) return;
  const at::Tensor scale = expected.to(at::kDouble).abs().clamp_min(1);
  const double most = found.detach()
                          .to(at::kDouble)
                          .sub(expected.to(at::kDouble))
                          .div(scale)
                          .abs()
                          .max()
                          .item<double>();
  require(most <= tolerance, fmt::format("{}: {} from the joined batch's", what, most));
}

/// The whole batch in one call, and this rank's part of it in a scope.
void require_as_joined(const Case& each, const Ranks& ranks) {
  const int64_t total = std::accumulate(each.samples.begin(), each.samples.end(), int64_t{0});
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const int64_t begin =
      std::accumulate(each.samples.begin(), each.samples.begin() + ranks.rank(), int64_t{0});
  const auto part = [&](const at::Tensor& whole) {
    return whole.narrow(0, begin, each.samples[rank]);
  };
  const auto format =
      each.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;

  const at::Tensor values = input_of(total, each.places).to(each.dtype);
  const at::Tensor seed = wave(values.sizes(), 0.31).to(each.dtype);
  const at::Tensor whole = values.detach().clone().requires_grad_();
  const Parts joined(each);
  const at::Tensor expected = joined.run(whole, each.momentum);
  expected.backward(seed);

  const at::Tensor own = part(values).contiguous(format).clone().requires_grad_();
  const Parts parts(each);
  at::Tensor found;
  {
    const StatisticsScope scope(ranks);
    found = parts.run(own, each.momentum);
  }
  found.backward(part(seed));

  const auto check = [&](const at::Tensor& there, const at::Tensor& wanted, const char* what) {
    require_near(there, wanted, each.tolerance, each.name() + ": " + what);
  };
  check(found, part(expected), "the result");
  require(found.scalar_type() == each.dtype, each.name() + ": the result's type");
  if (each.channels_last && found.numel() > 0)
    require(found.is_contiguous(format), each.name() + ": the result's order");
  check(own.grad(), part(whole.grad()), "the gradient of the input");
  if (each.has_weight) {
    at::Tensor sum = parts.weight.grad().clone();
    ranks.all_reduce(sum);
    check(sum, joined.weight.grad(), "the sum of the weight's gradients");
  }
  if (each.has_bias) {
    at::Tensor sum = parts.bias.grad().clone();
    ranks.all_reduce(sum);
    check(sum, joined.bias.grad(), "the sum of the bias's gradients");
  }
  if (each.has_running) {
    check(parts.running_mean, joined.running_mean, "the running mean");
    check(parts.running_var, joined.running_var, "the running variance");
  }
}

void require_all_as_joined(int64_t processes, const std::vector<Case>& cases) {
  EXPECT_EQ(in_ranks(processes,
                     [&](World& world) {
                       for (const Case& each : cases) require_as_joined(each, world.ranks());
                     }),
            RankOutcome{});
}

TEST(SyncBatchNorm, IsThatOfTheJoinedBatch) {
  require_all_as_joined(
      2, {{.samples = {4, 4}, .places = {}},
          {.samples = {2, 2}, .places = {3}},
          {.samples = {2, 2}, .places = {4, 2}},
          {.samples = {1, 1}, .places = {2, 3, 2}},
          {.samples = {2, 2}, .places = {4, 2}, .channels_last = true},
          {.samples = {3, 3}, .places = {}, .has_weight = false, .has_bias = false},
          {.samples = {3, 3}, .places = {}, .has_bias = false},
          {.samples = {3, 3}, .places = {}, .has_running = false},
          {.samples = {3, 3}, .places = {}, .momentum = 1},
          {.samples = {3, 3}, .places = {4}, .dtype = at::kFloat, .tolerance = 1e-4}});
}

TEST(SyncBatchNorm, TakesBatchesOfAnySize) {
  require_all_as_joined(2, {{.samples = {4, 1}, .places = {}},
                            {.samples = {1, 1}, .places = {}},
                            {.samples = {3, 0}, .places = {}},
                            {.samples = {0, 2}, .places = {3}},
                            {.samples = {3, 0}, .places = {4, 2}, .channels_last = true},
                            {.samples = {1, 0}, .places = {2, 2}}});
  require_all_as_joined(3, {{.samples = {2, 0, 5}, .places = {}},
                            {.samples = {0, 0, 2}, .places = {}},
                            {.samples = {1, 2, 3}, .places = {2, 2}}});
}

TEST(SyncBatchNorm, SumsInFloatWhatIsOfLowPrecision) {
  const auto body = [](World& world) {
    const Case each{.samples = {}, .places = {}, .dtype = at::kBFloat16};
    const at::Tensor values = input_of(6, {4}).to(at::kBFloat16);
    const Parts joined(each);
    const at::Tensor expected = joined.run(values.to(at::kFloat), 0.1).to(at::kBFloat16);
    const Parts parts(each);
    const StatisticsScope scope(world.ranks());
    const at::Tensor found = parts.run(values.narrow(0, 3 * world.ranks().rank(), 3), 0.1);
    require(found.scalar_type() == at::kBFloat16, "the result is of the input's type");
    require_near(found, expected.narrow(0, 3 * world.ranks().rank(), 3), 1e-2, "the result");
    require_near(parts.running_mean, joined.running_mean, 1e-5, "the running mean");
    require_near(parts.running_var, joined.running_var, 1e-5, "the running variance");
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

// One rank calls them: a collective would wait for the other.
TEST(SyncBatchNorm, IsOfEachRankWhereNothingIsToBeJoined) {
  const auto body = [](World& world) {
    if (!world.ranks().is_first()) return;
    const Case each{.samples = {}, .places = {}};
    const at::Tensor values = input_of(4, {3});
    const Parts parts(each), plain(each);
    const auto evaluate = [&](const Parts& with) {
      return at::batch_norm(values, with.weight, with.bias, with.running_mean, with.running_var,
                            /*training=*/false, 0.1, kEps, false);
    };
    const auto of_instances = [&] {
      return at::instance_norm(values, {}, {}, {}, {}, /*use_input_stats=*/true, 0.1, kEps, false);
    };
    const StatisticsScope scope(world.ranks());
    const auto in_own_scope = [](const auto& function) {
      const StatisticsScope own(std::nullopt);
      return function();
    };
    require(evaluate(parts).equal(in_own_scope([&] { return evaluate(plain); })), "evaluation");
    require(of_instances().equal(in_own_scope(of_instances)), "instance normalization");
    require_near(of_instances().mean(2), at::zeros({4, kChannels}, at::kDouble), 1e-10,
                 "the means of samples");
    in_own_scope([&] { return parts.run(values, 0.1); });
    const StatisticsScope of_one((Ranks()));
    parts.run(values, 0.1);
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

TEST(SyncBatchNorm, LeavesOutWhatDoesNotCount) {
  const auto body = [](World& world) {
    const bool counts = world.ranks().is_first();
    const Case each{.samples = {}, .places = {}};
    const Parts joined(each);
    const at::Tensor counted = input_of(4, {});
    const at::Tensor whole = counted.clone().requires_grad_();
    const at::Tensor seed = wave(counted.sizes(), 0.31);
    const at::Tensor expected = joined.run(whole, 0.1);
    expected.backward(seed);

    const Parts parts(each);
    const at::Tensor own = (counts ? counted : counted.mul(-3)).clone().requires_grad_();
    at::Tensor found;
    {
      const StatisticsScope scope(world.ranks());
      const UncountedPass pass(!counts);
      found = parts.run(own, 0.1);
    }
    found.backward(counts ? seed : at::zeros_like(seed));
    require_near(parts.running_mean, joined.running_mean, 1e-10, "the running mean");
    require_near(parts.running_var, joined.running_var, 1e-10, "the running variance");
    require_near(own.grad(), counts ? whole.grad() : at::zeros_like(seed), 1e-10,
                 "the gradient of the input");
    if (counts) require_near(found, expected, 1e-10, "the result");
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

// Nothing is known of the statistics then, and all ranks know that.
TEST(SyncBatchNorm, MovesNothingWithoutAnySample) {
  const auto body = [](World& world) {
    const Case each{.samples = {}, .places = {}};
    const Parts parts(each), before(each);
    const at::Tensor own = input_of(2, {}).requires_grad_();
    at::Tensor found;
    {
      const StatisticsScope scope(world.ranks());
      const UncountedPass pass(true);
      found = parts.run(own, 0.1);
      require(parts.run(input_of(0, {}), 0.1).numel() == 0, "an empty result");
    }
    found.sum().mul(0).backward();
    require(found.isfinite().all().item<bool>(), "a result of numbers");
    require(own.grad().eq(0).all().item<bool>(), "no gradient");
    require(parts.running_mean.equal(before.running_mean), "the running mean");
    require(parts.running_var.equal(before.running_var), "the running variance");
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

/// What `function` throws; empty: nothing.
template <class Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

void require_error(const std::string& error, std::string_view part) {
  require(error.find(part) != std::string::npos, fmt::format("'{}' in '{}'", part, error));
}

TEST(SyncBatchNorm, RefusesWhatHasNoResultOnAllRanks) {
  const auto body = [](World& world) {
    const Case each{.samples = {}, .places = {}};
    const Parts parts(each);
    const StatisticsScope scope(world.ranks());
    const int64_t samples = world.ranks().is_first() ? 1 : 0;
    require_error(error_of([&] { parts.run(input_of(samples, {}), 0.1); }),
                  "Expected more than 1 value per channel when training");

    const at::Tensor own = input_of(3, {}).requires_grad_();
    const at::Tensor found = parts.run(own, 0.1);
    require_error(
        error_of([&] { found.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true); }),
        "cannot be differentiated");
    found.sum().backward();

    require_error(error_of([&] {
                    at::batch_norm(own, parts.weight, parts.bias, at::zeros({2}), at::ones({2}),
                                   true, 0.1, kEps, false);
                  }),
                  "running_mean should contain 5 elements not 2");
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

}  // namespace
}  // namespace phalanx::batch_norm
