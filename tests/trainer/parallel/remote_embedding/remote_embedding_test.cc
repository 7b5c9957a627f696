// SPDX-License-Identifier: Apache-2.0
// Embeddings on ranks of their own, beside one process that computes what all ranks do.

#include "trainer/parallel/remote_embedding/remote_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/layers/embedding.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/parameters.h"

namespace phalanx {
namespace {

constexpr int64_t kMicroBatches = 2;
constexpr int64_t kWords = 50;
constexpr int64_t kPlaces = 3;
constexpr int64_t kWidth = 4;
constexpr double kLr = 0.1;

/// A model of two tables; with `is_tied` its head is one of them.
struct Net : torch::nn::Module {
  explicit Net(bool is_tied, int64_t rank = 0)
      : tied(is_tied),
        words(register_module(
            "words", Embedding(kWords, kWidth, 1.0, is_tied ? TableUse::whole : TableUse::rows))),
        places(register_module("places", Embedding(kPlaces, kWidth, 1.0, TableUse::rows))),
        inner(register_parameter("inner", at::zeros({kWidth, kWidth}))),
        passes(register_buffer("passes", at::zeros({1}))) {
    to(at::kDouble);
    const at::NoGradGuard no_grad;
    double step = 0.3 + static_cast<double>(rank);
    for (const at::Tensor& each : parameters()) {
      each.copy_((at::arange(each.numel(), at::kDouble).view(each.sizes()) * step).sin());
      step += 0.4;
    }
  }

  static at::Tensor ids(int64_t number) {
    return (at::arange(2 * kPlaces, at::kLong) * (number + 1)).remainder(kWords).view({2, kPlaces});
  }

  Loss loss(int64_t number) {
    passes.add_(1);
    const at::Tensor of_words = words(ids(number));
    const at::Tensor of_places = places(at::arange(kPlaces, at::kLong));
    const at::Tensor hidden = at::linear(of_words + of_places, inner).tanh();
    if (!tied) return hidden.square().mean();
    return at::linear(hidden, words->weight).logsumexp(-1).mean();
  }

  bool tied;
  Embedding words;
  Embedding places;
  at::Tensor inner;
  at::Tensor passes;
};

int64_t number_of(int64_t step, int64_t rank, int64_t micro_batch) {
  return 100 * step + 10 * rank + micro_batch;
}

std::vector<at::Tensor> copies(const Net& net) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& each : net.parameters()) values.push_back(each.detach().clone());
  return values;
}

void descend(const std::vector<NamedParameter>& parameters) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& each : parameters) {
    if (each.tensor.grad().defined()) at::Tensor(each.tensor).sub_(each.tensor.grad() * kLr);
    each.tensor.mutable_grad().reset();
  }
}

// What the ranks compute, one after the other.
std::vector<at::Tensor> trained_alone(bool is_tied, int64_t ranks, int64_t steps) {
  Net net(is_tied);
  const std::vector<at::Tensor> parameters = net.parameters();
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<at::Tensor> means(parameters.size());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < kMicroBatches; ++i) {
        net.loss(number_of(step, rank, i)).total().backward();
      }
      for (size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor share = parameters[i].grad() / ranks;
        means[i] = means[i].defined() ? means[i] + share : share;
        parameters[i].mutable_grad().reset();
      }
    }
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = means[i];
    descend(local_parameters(net));
  }
  return copies(net);
}

// All ranks run the same passes; a server's calls no forward.
void train(Net& net, RemoteEmbedding& engine, int64_t rank, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      engine.run([&] { return net.loss(number_of(step, rank, i)); }, i + 1 == kMicroBatches)
          .total()
          .backward();
    }
    descend(local_parameters(net, &engine));
  }
}

struct Case {
  int64_t ranks = 2;
  int64_t servers = 1;
  bool is_tied = false;
};

class RemoteEmbeddings : public ::testing::TestWithParam<Case> {};

TEST_P(RemoteEmbeddings, TrainAsOneProcessToTheLastBit) {
  const Case given = GetParam();
  const auto outcome = in_ranks(given.ranks, [&](World& world) {
    const int64_t rank = world.ranks().rank();
    Net net(given.is_tied, rank);
    RemoteEmbedding engine(net, world.ranks(), {.servers = given.servers});
    train(net, engine, rank, 10);
    const auto alone = trained_alone(given.is_tied, given.ranks - given.servers, 10);
    engine.summon_full_params([&] {
      const auto here = copies(net);
      for (size_t i = 0; i < here.size(); ++i) {
        require(here[i].equal(alone[i]), "parameter " + std::to_string(i) + " has the same bits");
      }
      require(!net.words->weight.equal(Net(given.is_tied).words->weight), "they have moved");
    });
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(RanksAndServers, RemoteEmbeddings,
                         ::testing::Values(Case{2, 1, false}, Case{2, 1, true}, Case{3, 1, false},
                                           Case{3, 1, true}, Case{4, 2, false}));

TEST(RemoteEmbedding, HoldsTablesOnServersAlone) {
  const auto outcome = in_ranks(3, [](World& world) {
    const bool serves = world.ranks().rank() == 2;
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {.tables = {"words"}});
    for (const NamedParameter& each : local_parameters(net, &engine)) {
      const bool is_table = each.name == "words.weight";
      require((each.tensor.numel() > 0) == (is_table == serves), each.name);
    }
    const auto bytes = static_cast<int64_t>(net.words->weight.storage().nbytes());
    require(bytes == (serves ? kWords * kWidth * 8 : 8), "memory of a table");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, BringsTheRowsOfAPassAlone) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    engine.run([&] { return net.loss(0); }, true);  // words 0 to 5, places 0 to 2
    require(engine.rows_brought() == (world.ranks().is_first() ? 6 + 3 : 0), "rows");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, MeasuresTheGradientsOfTheWholeModel) {
  const auto outcome = in_ranks(3, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    engine.run([&] { return net.loss(1); }, true).total().backward();
    require(engine.backward_passes() == 1, "a backward pass");
    const double norm = engine.gradient_norm(local_parameters(net, &engine)).item<double>();
    Net alone(/*is_tied=*/false);
    alone.loss(1).total().backward();
    double square = 0;
    for (const at::Tensor& each : alone.parameters()) {
      square += each.grad().square().sum().item<double>();
    }
    require(std::abs(norm - std::sqrt(square)) < 1e-12, "the norm of all gradients");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, EvaluatesWithTheTablesAsTheyAre) {
  for (const bool is_tied : {false, true}) {
    const auto outcome = in_ranks(2, [&](World& world) {
      const at::NoGradGuard no_grad;
      Net net(is_tied);
      RemoteEmbedding engine(net, world.ranks(), {});
      Net alone(is_tied);
      for (int64_t pass = 0; pass < 20; ++pass) {
        const Loss loss = engine.run([&] { return net.loss(pass); }, true);
        require(loss.parts().front().first == "loss", "its name");
        const double expected =
            world.ranks().is_first() ? alone.loss(pass).total().item<double>() : 0;
        require(loss.total().item<double>() == expected,
                "the loss of pass " + std::to_string(pass));
        // What is written after a pass is for the next one.
        for (const NamedParameter& each : local_parameters(net, &engine)) each.tensor.mul_(0.9);
        for (const at::Tensor& each : alone.parameters()) each.mul_(0.9);
      }
      engine.close();
    });
    EXPECT_EQ(outcome.message, "");
  }
}

TEST(RemoteEmbedding, UsesTheWholeModelOnEveryRank) {
  const auto outcome = in_ranks(3, [](World& world) {
    Net net(/*is_tied=*/false, world.ranks().rank());
    RemoteEmbedding engine(net, world.ranks(), {});
    Net alone(/*is_tied=*/false);
    const at::NoGradGuard no_grad;
    engine.use([&] {
      require(net.loss(3).total().equal(alone.loss(3).total()), "the loss of rank 0's weights");
    });
    if (world.ranks().rank() < 2) {
      require(net.words->weight.isnan().all().item<bool>(), "the table has been given up again");
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, LeavesOutAPassWithoutABackwardPass) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    engine.run([&] { return net.loss(5); }, true);
    engine.run([&] { return net.loss(1); }, true).total().backward();
    if (!world.ranks().is_first()) {
      Net alone(/*is_tied=*/false);
      alone.loss(1).total().backward();
      require(net.words->weight.grad().equal(alone.words->weight.grad()), "the second pass's");
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

// On all ranks alike; a server's losses have no value.
using Passes = void (*)(const std::function<at::Tensor(int64_t number, bool synchronize)>& loss);

/// Passes that come in another order than one after the other.
struct Order {
  const char* name;
  Passes passes;
};

class Orders : public ::testing::TestWithParam<Order> {};

TEST_P(Orders, GiveTheGradientsOfAllBackwardPasses) {
  const Passes passes = GetParam().passes;
  const auto outcome = in_ranks(2, [&](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    passes([&](int64_t number, bool synchronize) {
      return engine.run([&] { return net.loss(number); }, synchronize).total();
    });
    Net alone(/*is_tied=*/false);
    passes([&](int64_t number, bool /*synchronize*/) { return alone.loss(number).total(); });
    const auto require_same = [](const at::Tensor& here, const at::Tensor& expected) {
      require(here.grad().defined() && here.grad().allclose(expected.grad(), 1e-12, 1e-12),
              "a gradient");
    };
    if (world.ranks().is_first()) {
      require_same(net.inner, alone.inner);
    } else {
      require_same(net.words->weight, alone.words->weight);
      require_same(net.places->weight, alone.places->weight);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(OfPasses, Orders,
                         ::testing::Values(Order{"EachAfterBothForwardPasses",
                                                 [](const auto& loss) {
                                                   const at::Tensor first = loss(1, false);
                                                   const at::Tensor second = loss(2, true);
                                                   first.backward();
                                                   second.backward();
                                                 }},
                                           Order{"OfTheirSum",
                                                 [](const auto& loss) {
                                                   const at::Tensor first = loss(1, false);
                                                   (first + loss(2, true)).backward();
                                                 }},
                                           Order{"TwiceOfOneGraph",
                                                 [](const auto& loss) {
                                                   const at::Tensor once = loss(1, true);
                                                   once.backward({}, /*retain_graph=*/true);
                                                   once.backward();
                                                 }},
                                           Order{"AfterAPassWithoutGradients",
                                                 [](const auto& loss) {
                                                   const at::Tensor first = loss(1, true);
                                                   {
                                                     const at::NoGradGuard no_grad;
                                                     loss(2, false);
                                                   }
                                                   first.backward();
                                                 }}),
                         [](const auto& tested) { return tested.param.name; });

// As activation checkpointing does, of a table within a unit.
TEST(RemoteEmbedding, LooksUpRowsInABackwardPass) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    at::Tensor again;
    const auto pass = [&] {
      const at::Tensor hidden = net.words(Net::ids(1));
      hidden.register_hook([&](const at::Tensor&) { again = net.words(Net::ids(1)); });
      return Loss(hidden.square().mean() + net.inner.sum());
    };
    engine.run(pass, true).total().backward();
    if (world.ranks().is_first()) {
      require(again.equal(Net(/*is_tied=*/false).words(Net::ids(1))), "the rows of the table");
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, LetsOnePartOfALossBeDifferentiatedAlone) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    const auto parts = [&](Net& of) {
      return Loss(Loss::Parts{{"small", of.loss(1).total() * 0.1}, {"large", of.loss(1).total()}});
    };
    engine.run([&] { return parts(net); }, true).parts()[1].second.backward();
    if (!world.ranks().is_first()) {
      Net alone(/*is_tied=*/false);
      parts(alone).parts()[1].second.backward();
      require(net.words->weight.grad().allclose(alone.words->weight.grad(), 1e-12, 1e-12), "rows");
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, NamesARowThatIsNotThere) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    engine.run([&] { return Loss(net.words(at::arange(60, at::kLong)).sum()); }, true);
    engine.close();
  });
  EXPECT_EQ(outcome.message, "rank 0: row 59 of 'words' was looked up, which has rows 0 to 49");
}

TEST(RemoteEmbedding, RefusesPassesWithoutALoss) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    RemoteEmbedding engine(net, world.ranks(), {});
    try {
      engine.run_tensors([&] { return std::vector<at::Tensor>{net.inner}; }, true);
    } catch (const std::logic_error&) {
      engine.close();
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(RemoteEmbedding, RefusesServersThatLeaveNoRankToTrain) {
  const auto outcome = in_ranks(2, [](World& world) {
    Net net(/*is_tied=*/false);
    try {
      const RemoteEmbedding engine(net, world.ranks(), {.servers = 2});
    } catch (const std::invalid_argument& error) {
      require(std::string(error.what()) == "2 servers of 2 ranks: at least one trains",
              error.what());
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
