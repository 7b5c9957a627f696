// SPDX-License-Identifier: Apache-2.0
// Training by parameter servers, beside one process that computes what all ranks do.

#include "trainer/parallel/parameter_server/parameter_server.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/embedding.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/clip.h"
#include "trainer/api/parameters.h"
#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {
namespace {

constexpr int64_t kMicroBatches = 2;
constexpr double kLr = 0.1;

/// Counts its passes in a buffer, on each rank by another step.
struct Net : torch::nn::Module {
  explicit Net(int64_t rank = 0)
      : counts_by(static_cast<double>(rank + 1)),
        first(register_parameter("first", values(4, 3, 0.3 + static_cast<double>(rank)))),
        second(register_parameter("second", values(4, 4, 0.7))),
        head(register_parameter("head", values(1, 4, 0.2))),
        passes(register_buffer("passes", at::zeros({1}, at::kDouble))) {}

  static at::Tensor values(int64_t rows, int64_t columns, double step) {
    return (at::arange(rows * columns, at::kDouble).view({rows, columns}) * step).sin();
  }

  at::Tensor loss(int64_t number) {
    passes.add_(counts_by);
    const at::Tensor input =
        (at::arange(6, at::kDouble).view({2, 3}) + static_cast<double>(number)).cos();
    const at::Tensor hidden = at::linear(at::linear(input, first).tanh(), second).tanh();
    return at::linear(hidden, head).square().mean();
  }

  double counts_by;
  at::Tensor first;
  at::Tensor second;
  at::Tensor head;
  at::Tensor passes;
};

int64_t number_of(int64_t step, int64_t rank, int64_t micro_batch) {
  return 100 * step + 10 * rank + micro_batch;
}

std::vector<at::Tensor> copies(const Net& net) {
  return {net.first.detach().clone(), net.second.detach().clone(), net.head.detach().clone()};
}

void descend(const std::vector<NamedParameter>& parameters) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& each : parameters) {
    if (each.tensor.grad().defined()) at::Tensor(each.tensor).sub_(each.tensor.grad() * kLr);
    each.tensor.mutable_grad().reset();
  }
}

// What the ranks compute, one after the other.
std::vector<at::Tensor> trained_alone(int64_t ranks, int64_t steps) {
  Net net;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<at::Tensor> means(3);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < kMicroBatches; ++i) net.loss(number_of(step, rank, i)).backward();
      const std::vector<at::Tensor> parameters = net.parameters();
      for (size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor share = parameters[i].grad() / ranks;
        means[i] = means[i].defined() ? means[i] + share : share;
        parameters[i].mutable_grad().reset();
      }
    }
    const std::vector<at::Tensor> parameters = net.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = means[i];
    descend(local_parameters(net));
  }
  return copies(net);
}

void train(Net& net, ParameterServer& engine, int64_t rank, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      engine
          .run_tensors([&] { return std::vector<at::Tensor>{net.loss(number_of(step, rank, i))}; },
                       /*synchronize=*/i + 1 == kMicroBatches)[0]
          .backward();
    }
    descend(local_parameters(net, &engine));
  }
}

std::vector<at::Tensor> whole(const Net& net, ParameterServer& engine) {
  std::vector<at::Tensor> values;
  engine.summon_full_params([&] { values = copies(net); });
  return values;
}

class ParameterServers : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(ParameterServers, TrainAsOneProcessToTheLastBit) {
  const auto [ranks, servers] = GetParam();
  const auto outcome = in_ranks(ranks, [&, servers = servers](World& world) {
    const int64_t rank = world.ranks().rank();
    Net net(rank);
    ParameterServer engine(net, world.ranks(), {.servers = servers});
    train(net, engine, rank, 10);
    const auto here = whole(net, engine);
    const auto alone = trained_alone(world.ranks().world_size(), 10);
    for (size_t i = 0; i < here.size(); ++i) {
      require(here[i].equal(alone[i]), "parameter " + std::to_string(i) + " has the same bits");
    }
    require(!here[0].equal(Net().first), "they have moved");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(RanksAndServers, ParameterServers,
                         ::testing::Values(std::pair(2, 1), std::pair(2, 2), std::pair(3, 2)));

TEST(ParameterServer, HoldsEachParameterOnOneRank) {
  const auto outcome = in_ranks(3, [](World& world) {
    Net net(world.ranks().rank());
    ParameterServer engine(net, world.ranks(), {.servers = 2});
    at::Tensor held = at::zeros({3}, at::kLong);
    const auto local = local_parameters(net, &engine);
    for (size_t i = 0; i < local.size(); ++i) {
      held[static_cast<int64_t>(i)] = local[i].tensor.numel() > 0 ? 1 : 0;
    }
    const bool has_some = held.sum().item<int64_t>() > 0;
    require(has_some == (world.ranks().rank() < 2), "servers hold parameters, others none");
    world.ranks().all_reduce(held);
    require(held.equal(at::full({3}, 1, at::kLong)), "each is held once");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

std::vector<std::string> names_of(const std::vector<ShardedTensorView>& views) {
  std::vector<std::string> names;
  for (const ShardedTensorView& view : views) names.push_back(view.name);
  return names;
}

// As of a model beside which adapters are trained.
TEST(ParameterServer, TellsFrozenParametersFromTrainedOnesOnAllRanks) {
  const auto outcome = in_ranks(3, [](World& world) {
    Net net(world.ranks().rank());
    net.second.set_requires_grad(false);
    ParameterServer engine(net, world.ranks(), {.servers = 2});
    const auto trained = parameter_views(net, /*trained=*/true, &engine);
    require(names_of(trained) == std::vector<std::string>{"first", "head"}, "what is trained");
    const auto frozen = parameter_views(net, /*trained=*/false, &engine);
    require(names_of(frozen) == std::vector<std::string>{"second"}, "what is not trained");
    require(frozen[0].local.numel() == net.second.numel(), "every rank holds all of it");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, LeavesFrozenParametersAsTheyWere) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(world.ranks().rank());
    net.second.set_requires_grad(false);
    ParameterServer engine(net, world.ranks(), {.servers = 2});
    train(net, engine, world.ranks().rank(), 3);
    const auto after = whole(net, engine);
    require(after[1].equal(Net().second), "what is not trained");
    require(!after[0].equal(Net().first) && !after[2].equal(Net().head), "what is trained");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, MeasuresTheGradientsOfTheWholeModel) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(world.ranks().rank());
    ParameterServer engine(net, world.ranks(), {.servers = 2});
    engine.run_tensors([&] { return std::vector<at::Tensor>{net.loss(1)}; }, true)[0].backward();
    const double norm = engine.gradient_norm(local_parameters(net, &engine)).item<double>();
    Net alone;
    alone.loss(1).backward();
    double square = 0;
    for (const at::Tensor& each : alone.parameters()) {
      square += each.grad().square().sum().item<double>();
    }
    require(std::abs(norm - std::sqrt(square)) < 1e-12, "the norm of all gradients");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

// As of an optimizer whose parameters this rank's passes have left out.
TEST(ParameterServer, MeasuresGradientsThatARankHasNoneOf) {
  const auto outcome = in_ranks(2, [](World& world) {
    const bool is_server = world.ranks().is_first();
    Net net;
    ParameterServer engine(net, world.ranks(), {});
    engine.run_tensors([&] { return std::vector<at::Tensor>{net.loss(1)}; }, true)[0].backward();
    const auto held = local_parameters(net, &engine);
    const double expected = measure_gradients(held).total.item<double>();
    if (!is_server) {
      for (const NamedParameter& each : held) each.tensor.mutable_grad().reset();
    }
    const double norm = engine.gradient_norm(held).item<double>();
    require(norm > 0 && (!is_server || norm == expected), "the server's");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, AddsUpTheMeansOfSeveralBackwardPasses) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(world.ranks().rank());
    ParameterServer engine(net, world.ranks(), {.servers = 1});
    for (int64_t pass = 0; pass < 2; ++pass) {
      engine.run_tensors([&] { return std::vector<at::Tensor>{net.loss(pass)}; }, true)[0]
          .backward();
    }
    require(engine.backward_passes() == 2, "two backward passes");
    if (world.ranks().is_first()) {
      Net alone;
      alone.loss(0).backward();
      alone.loss(1).backward();
      require(net.first.grad().allclose(alone.first.grad(), 1e-12, 1e-14), "the sum of the means");
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, BringsBuffersOfRank0ToAll) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(world.ranks().rank());
    ParameterServer engine(net, world.ranks(), {});
    train(net, engine, world.ranks().rank(), 3);
    engine.summon_full_params(
        [&] { require(net.passes.item<double>() == 3 * kMicroBatches, "rank 0's count"); });
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

/// Looks rows up, and may multiply by the table, too.
struct Lookups : torch::nn::Module {
  explicit Lookups(TableUse use)
      : table(register_module("table", Embedding(6, 3, /*initial_std=*/1.0, use))) {
    const at::NoGradGuard no_grad;
    table->weight.copy_(Net::values(6, 3, 0.3));
  }

  at::Tensor loss(int64_t number) {
    const at::Tensor ids = at::arange(number, number + 4).remainder(3);  // A row comes twice.
    return table->forward(ids).square().sum();
  }

  Embedding table;
};

TEST(ParameterServer, BringsTheRowsAloneOfASparseGradient) {
  const auto outcome = in_ranks(2, [](World& world) {
    const int64_t rank = world.ranks().rank();
    Lookups net(TableUse::rows);
    ParameterServer engine(net, world.ranks(), {.sparse_embeddings = true});
    require(engine.description().back() == "sparse gradients: table", engine.description().back());
    int64_t sparse = 0;
    const auto hook = net.table->weight.register_hook(
        [&](const at::Tensor& gradient) { sparse += gradient.is_sparse() ? 1 : 0; });
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      engine
          .run_tensors([&] { return std::vector<at::Tensor>{net.loss(10 * rank + i)}; },
                       /*synchronize=*/i + 1 == kMicroBatches)[0]
          .backward();
    }
    net.table->weight.remove_hook(hook);
    require(sparse == kMicroBatches, "the gradients of passes are sparse");
    if (world.ranks().is_first()) {
      Lookups alone(TableUse::rows);
      for (const int64_t of_rank : {0, 10}) {
        for (int64_t i = 0; i < kMicroBatches; ++i) (alone.loss(of_rank + i) / 2).backward();
      }
      const at::Tensor mean = net.table->weight.grad();
      require(!mean.is_sparse(), "an optimizer gets it dense");
      require(mean.allclose(alone.table->weight.grad(), 1e-6, 1e-7), "the mean of both ranks");
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, RefusesSparseGradientsOfATableThatIsUsedWhole) {
  const auto outcome = in_ranks(2, [](World& world) {
    Lookups net(TableUse::whole);
    try {
      const ParameterServer engine(net, world.ranks(), {.sparse_embeddings = true});
    } catch (const std::invalid_argument& error) {
      require(std::string(error.what()).starts_with("the model has no trained embedding"),
              error.what());
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, LearnsByAsynchronousUpdates) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(world.ranks().rank());
    ParameterServer engine(net, world.ranks(), {.servers = 1, .synchronous = false});
    const auto mean_loss = [&] {
      const at::NoGradGuard no_grad;
      double sum = 0;
      for (int64_t i = 0; i < 20; ++i) sum += net.loss(i).item<double>();
      return sum / 20;
    };
    const double before = mean_loss();
    train(net, engine, world.ranks().rank(), 50);
    world.ranks().barrier();
    double after = 0;
    engine.summon_full_params([&] { after = mean_loss(); });
    require(after < 0.9 * before, "the loss has become smaller");
    world.ranks().barrier();
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, EvaluatesTheSameValuesOnAllRanksWithoutRoundsToo) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    Net net(ranks.rank());
    ParameterServer engine(net, ranks, {.servers = 2, .synchronous = false});
    for (int64_t round = 0; round < 20; ++round) {
      train(net, engine, ranks.rank(), 1);
      at::Tensor seen;
      {
        const at::NoGradGuard no_grad;
        engine.run_tensors(
            [&] {
              seen = at::cat({net.first.flatten(), net.second.flatten(), net.head.flatten()});
              return std::vector<at::Tensor>();
            },
            true);
      }
      const at::Tensor of_first = seen.clone();
      ranks.broadcast(of_first);
      require(seen.equal(of_first), "the values of round " + std::to_string(round));
      const at::NoGradGuard no_grad;
      // What a rank writes after its pass is not what others still see of it.
      for (const NamedParameter& each : local_parameters(net, &engine)) each.tensor.add_(1);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, TrainsOnWithWeightsThatWereSetBack) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    Net net(ranks.rank());
    ParameterServer engine(net, ranks, {.servers = 1, .synchronous = false});
    train(net, engine, ranks.rank(), 3);
    ranks.barrier();
    {
      const at::NoGradGuard no_grad;
      for (const NamedParameter& each : local_parameters(net, &engine)) each.tensor.fill_(5);
    }
    engine.weights_restored();
    at::Tensor seen;
    engine.run_tensors(
        [&] {
          seen = net.first.detach().clone();
          return std::vector<at::Tensor>{net.loss(1)};
        },
        true);
    require(seen.equal(at::full_like(seen, 5)), "the values that were set back");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, GoesOnAfterABackwardPassThatThrew) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(world.ranks().rank());
    ParameterServer engine(net, world.ranks(), {});
    const auto backward = [&] {
      engine.run_tensors([&] { return std::vector<at::Tensor>{net.loss(1)}; }, true)[0].backward();
    };
    const auto hook = net.first.register_hook(
        [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no memory is left"); });
    std::string told;
    try {
      backward();
    } catch (const std::exception& error) {
      told = error.what();
    }
    require(told.find("no memory is left") != std::string::npos, told);
    net.first.remove_hook(hook);
    for (const at::Tensor& each : net.parameters()) each.mutable_grad().reset();
    backward();
    require(engine.backward_passes() == 1, "the next one comes to its end");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, RefusesTheValuesOfOtherParameters) {
  const auto outcome = in_ranks(2, [](World& world) {
    const bool is_server = world.ranks().is_first();
    Net net;
    net.second.set_requires_grad(!is_server);
    ParameterServer engine(net, world.ranks(), {});
    std::string told;
    try {
      engine.run_tensors([&] { return std::vector<at::Tensor>{net.loss(1)}; }, true);
    } catch (const std::logic_error& error) {
      told = error.what();
    }
    require(told == (is_server ? ""
                               : "worker 'server0' (rank 0) serves 3 tensors, and 4 are expected "
                                 "here: do all ranks train the same parameters?"),
            told);
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ParameterServer, RefusesMoreServersThanRanks) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net;
    try {
      const ParameterServer engine(net, world.ranks(), {.servers = 3});
    } catch (const std::invalid_argument& error) {
      require(std::string(error.what()) == "3 parameter servers of 2 ranks", error.what());
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
