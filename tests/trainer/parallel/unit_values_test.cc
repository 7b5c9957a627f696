// SPDX-License-Identifier: Apache-2.0
// Units whose arguments and results are optional tensors, vectors and tuples of tensors, under
// FSDP, activation checkpointing and autocast, compared with the same modules without hooks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/unit.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/precision/autocast.h"

namespace phalanx {
namespace {

constexpr int64_t kWidth = 6;

using Optional = std::optional<at::Tensor>;

at::Tensor wave(at::IntArrayRef shape, double phase) {
  return torch::sin(torch::arange(c10::multiply_integers(shape)) * 0.7 + phase)
      .to(at::kFloat)
      .view(shape);
}

// A weight, and the dtypes of the floating tensors that forward has been given.
class Layer : public torch::nn::Module, public Unit {
 public:
  explicit Layer(int64_t number)
      : weight_(register_parameter("weight", wave({kWidth, kWidth}, double(number)))) {}

  std::vector<at::ScalarType> given;

 protected:
  at::Tensor turn(const at::Tensor& rows) {
    given.push_back(rows.scalar_type());
    return torch::tanh(torch::matmul(rows, weight_));
  }

 private:
  at::Tensor weight_;
};

// As T5's block: the first one has a table of which it makes a bias, all add and pass it on.
class BiasedImpl : public Layer {
 public:
  explicit BiasedImpl(int64_t number) : Layer(number) {
    if (number == 0) table_ = register_parameter("table", wave({3, kWidth}, 0.3));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& hidden, Optional bias) {
    if (!bias) bias = torch::cumsum(table_, 0);
    return {hidden + turn(hidden + bias->mean(0)), *bias};
  }

 private:
  at::Tensor table_;
};
UNIT(Biased);

// Streams that are mixed; an optional one may be missing.
class StreamsImpl : public Layer {
 public:
  using Layer::Layer;
  std::vector<at::Tensor> forward(std::vector<at::Tensor> streams,
                                  const std::vector<Optional>& extra) {
    for (at::Tensor& stream : streams) stream = stream + turn(stream);
    for (const Optional& each : extra) {
      if (each) streams.front() = streams.front() * (1 + turn(*each));
    }
    return streams;
  }
};
UNIT(Streams);

// Tuples within tuples, with numbers between.
class NestedImpl : public Layer {
 public:
  using Layer::Layer;
  std::pair<at::Tensor, std::tuple<Optional, double, at::Tensor>> forward(
      const std::tuple<at::Tensor, Optional>& rows, double factor, const at::Tensor& index) {
    const auto& [first, second] = rows;
    at::Tensor result = turn(first).index_select(0, index);
    if (second) result = result + factor * turn(*second);
    return {result, {second ? Optional(*second * factor) : std::nullopt, factor + 1, first}};
  }
};
UNIT(Nested);

// What came in goes out, and the result twice.
class ThroughImpl : public Layer {
 public:
  using Layer::Layer;
  std::vector<at::Tensor> forward(const at::Tensor& rows) {
    const at::Tensor turned = turn(rows);
    return {rows, turned, turned};
  }
};
UNIT(Through);

// Gives what a unit within it has given.
class AroundImpl : public Layer {
 public:
  explicit AroundImpl(int64_t number) : Layer(number) {
    within_ = register_module("within", Through(number + 10));
  }
  std::tuple<std::vector<at::Tensor>, at::Tensor> forward(const at::Tensor& rows) {
    std::vector<at::Tensor> given = within_(turn(rows));
    return {given, given.back()};
  }

 private:
  Through within_{nullptr};
};
UNIT(Around);

struct Cache {
  at::Tensor keys;
  Optional mask;
  int64_t length = 0;
  auto tensors() { return std::tie(keys, mask); }
};

class CachedImpl : public Layer {
 public:
  using Layer::Layer;
  Cache forward(Cache cache) {
    cache.keys = cache.keys + turn(cache.keys);
    if (cache.mask) cache.keys = cache.keys * *cache.mask;
    ++cache.length;
    return cache;
  }
};
UNIT(Cached);

class Net : public torch::nn::Module {
 public:
  virtual at::Tensor loss(const at::Tensor& rows) = 0;

  std::vector<Layer*> layers;
};

template <class Block>
class NetOf : public Net {
 public:
  NetOf() {
    scale_ = register_parameter("scale", wave({kWidth}, 5).add(2));
    for (int64_t i = 0; i < 3; ++i) {
      blocks_.emplace_back(register_module("block" + std::to_string(i), Block(i)));
      layers.push_back(blocks_.back().get());
    }
  }
  at::Tensor loss(const at::Tensor& rows) override { return result(rows * scale_).square().mean(); }

 private:
  at::Tensor result(at::Tensor rows);

  at::Tensor scale_;
  std::vector<Block> blocks_;
};

template <>
at::Tensor NetOf<Biased>::result(at::Tensor rows) {
  Optional bias;
  for (Biased& block : blocks_) std::tie(rows, bias) = block(rows, bias);
  return rows + bias->sum();
}

template <>
at::Tensor NetOf<Streams>::result(at::Tensor rows) {
  std::vector<at::Tensor> streams{rows, rows * 2};
  streams = blocks_[0](streams, std::vector<Optional>{});
  streams = blocks_[1](streams, std::vector<Optional>{std::nullopt, rows, streams[1]});
  return torch::cat(blocks_[2](streams, std::vector<Optional>(1)));
}

template <>
at::Tensor NetOf<Nested>::result(at::Tensor rows) {
  const at::Tensor index = torch::tensor({2, 0, 1});
  auto [first, rest] = blocks_[0](std::tuple(rows, Optional()), 0.5, index);
  auto [second, more] = blocks_[1](std::tuple(first, Optional(rows)), std::get<1>(rest), index);
  auto [third, last] = blocks_[2](std::tuple(second, std::get<0>(more)), 1.0, index);
  return third + std::get<2>(last) + *std::get<0>(last);
}

template <>
at::Tensor NetOf<Through>::result(at::Tensor rows) {
  for (Through& block : blocks_) {
    const std::vector<at::Tensor> given = block(rows);
    rows = given[0] + given[1] * given[2];
  }
  return rows;
}

template <>
at::Tensor NetOf<Around>::result(at::Tensor rows) {
  for (Around& block : blocks_) {
    const auto [given, last] = block(rows);
    rows = given[0] + given[1] * given[2] + last;
  }
  return rows;
}

template <>
at::Tensor NetOf<Cached>::result(at::Tensor rows) {
  Cache cache{.keys = rows, .mask = std::nullopt, .length = 0};
  for (Cached& block : blocks_) {
    cache = block(cache);
    if (cache.length == 1) cache.mask = torch::sigmoid(rows);
  }
  return cache.keys;
}

struct Kind {
  const char* name;
  std::unique_ptr<Net> (*make)();
};

void PrintTo(const Kind& kind, std::ostream* stream) { *stream << kind.name; }

template <class Block>
std::unique_ptr<Net> make() {
  return std::make_unique<NetOf<Block>>();
}

constexpr Kind kKinds[]{{"biased", make<Biased>}, {"streams", make<Streams>},
                        {"nested", make<Nested>}, {"through", make<Through>},
                        {"around", make<Around>}, {"cached", make<Cached>}};

at::Tensor rows_of(int64_t rank) { return wave({3, kWidth}, 1.0 + static_cast<double>(rank)); }

at::Tensor loss_of(Net& net, int64_t rank, const std::optional<AutocastTo>& to) {
  const Autocast autocast(to);
  return net.loss(rows_of(rank));
}

void require_same(const at::Tensor& a, const at::Tensor& b, const std::string& what, bool bitwise) {
  require(a.defined() == b.defined(), what);
  if (!a.defined()) return;
  require(bitwise ? torch::equal(a, b) : torch::allclose(a, b, 1e-5, 1e-6), what);
}

// The gradients of the mean over the ranks of the losses, by a module without hooks.
std::unique_ptr<Net> plain(const Kind& kind, int64_t ranks, const std::optional<AutocastTo>& to) {
  std::unique_ptr<Net> net = kind.make();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    loss_of(*net, rank, to).div(static_cast<double>(ranks)).backward();
  }
  return net;
}

class UnitValues : public ::testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(All, UnitValues, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

void require_recomputed(const Kind& kind, CheckpointedUnits policy,
                        const std::optional<AutocastTo>& to) {
  const auto expected = plain(kind, 1, to);
  const auto net = kind.make();
  require(checkpoint_activations(*net, {.policy = policy, .n = 2, .names = {}}) > 0, "no unit");
  loss_of(*net, 0, to).backward();
  const auto gradients = expected->named_parameters();
  for (const auto& item : net->named_parameters()) {
    require_same(item.value().grad(), gradients[item.key()].grad(), item.key(), /*bitwise=*/true);
  }
}

// In ranks as the others: autograd starts a thread, after which no rank can be forked.
TEST_P(UnitValues, AreRecomputed) {
  const Kind kind = GetParam();
  const auto body = [&kind](World&) {
    for (const auto& to : {std::optional<AutocastTo>(), std::optional(AutocastTo{})}) {
      require_recomputed(kind, CheckpointedUnits::unit, to);
      require_recomputed(kind, CheckpointedUnits::every_n, to);
    }
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

TEST_P(UnitValues, AreSharded) {
  const Kind kind = GetParam();
  const auto body = [&kind](World& world) {
    const Ranks& ranks = world.ranks();
    for (const auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op}) {
      for (const bool recompute : {false, true}) {
        for (const auto& to : {std::optional<AutocastTo>(), std::optional(AutocastTo{})}) {
          const auto expected = plain(kind, ranks.world_size(), to);
          const auto net = kind.make();
          if (recompute) {
            checkpoint_activations(*net, {.policy = CheckpointedUnits::unit, .n = 1, .names = {}});
          }
          const auto fsdp = prepare_fsdp(*net, ranks, strategy);
          fsdp->forward([&] { return loss_of(*net, ranks.rank(), to); }).backward();
          const auto gradients = expected->named_parameters();
          for (const auto& item : net->named_parameters()) {
            const NamedParameter local = fsdp->local({item.key(), item.value()});
            const at::Tensor whole = gradients[item.key()].grad().view(-1);
            require_same(local.tensor.grad(), whole.slice(0, local.shard->begin, local.shard->end),
                         item.key(), /*bitwise=*/false);
          }
        }
      }
    }
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

TEST_P(UnitValues, AreCast) {
  const Kind kind = GetParam();
  const auto body = [&kind](World& world) {
    const auto net = kind.make();
    FsdpOptions options;
    options.mixed_precision.param_dtype = LowPrecision::bfloat16;
    options.mixed_precision.cast_forward_inputs = true;
    const auto fsdp = prepare_fsdp(*net, world.ranks(), ShardingStrategy::full_shard, options);
    fsdp->forward([&] { return net->loss(rows_of(0)); }).backward();
    for (const Layer* layer : net->layers) {
      require(!layer->given.empty(), "a unit was not called");
      for (const auto dtype : layer->given) {
        require(dtype == at::kBFloat16, "a unit was given a tensor that was not cast");
      }
    }
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

// A module with hooks that is not sharded for itself.
class HeadImpl : public torch::nn::Module, public HookedModule {
 public:
  HeadImpl() : weight_(register_parameter("weight", wave({kWidth, kWidth}, 2))) {}
  at::Tensor forward(const at::Tensor& rows) {
    ++forwards;
    return torch::tanh(torch::matmul(rows, weight_));
  }

  int forwards = 0;

 private:
  at::Tensor weight_;
};
HOOKED(Head);

class WithHead : public torch::nn::Module {
 public:
  WithHead() : block(register_module("block", Through(0))), head(register_module("head", Head())) {}
  at::Tensor loss(const at::Tensor& rows) { return head(block(rows)[1]).square().mean(); }

  Through block;
  Head head;
};

TEST(HookedModules, CanBeRecomputedWithoutBeingUnits) {
  const auto body = [](World& world) {
    WithHead expected;
    for (int64_t r = 0; r < 2; ++r) expected.loss(rows_of(r)).div(2.0).backward();
    WithHead net;
    const auto chosen = checkpoint_activations(
        net, {.policy = CheckpointedUnits::by_name, .n = 1, .names = {"Head"}});
    require(chosen == 1, "the module is not found by its class");
    const auto fsdp = prepare_fsdp(net, world.ranks());
    require(fsdp->summary().size() == 2, "the module is sharded for itself");
    fsdp->forward([&] { return net.loss(rows_of(world.ranks().rank())); }).backward();
    require(net.head->forwards == 2, "the module is not recomputed");
    for (const auto& item : net.named_parameters()) {
      const NamedParameter local = fsdp->local({item.key(), item.value()});
      require_same(local.tensor.grad(),
                   expected.named_parameters()[item.key()].grad().view(-1).slice(
                       0, local.shard->begin, local.shard->end),
                   item.key(), /*bitwise=*/false);
    }
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

}  // namespace
}  // namespace phalanx
