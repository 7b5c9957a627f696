// SPDX-License-Identifier: Apache-2.0
// Every registered optimizer moves a model alike on one rank, in DDP and sharded, and goes on bit
// for bit from the state that it names.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/mse_loss.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/long.h"
#include "tests/test_device/device_ranks.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/registered.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/api/parameters.h"
#include "trainer/api/unit.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/fsdp/fsdp.h"

namespace phalanx {
namespace {

constexpr int64_t kRows = 12;
constexpr int64_t kWidth = 6;
// As many as the comparison with Python's has, where there is time.
const int64_t kSteps = runs_long_tests() ? 50 : 20;

at::Tensor wave(at::IntArrayRef shape, double phase) {
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  return (at::arange(size, at::kDouble) * 0.7 + phase).sin().view(shape);
}

class LayerImpl : public torch::nn::Module, public Unit {
 public:
  explicit LayerImpl(double phase)
      : up_(register_parameter("up", wave({9, kWidth}, phase) * 0.3)),
        down_(register_parameter("down", wave({kWidth, 9}, phase + 1) * 0.3)),
        bias_(register_parameter("bias", wave({kWidth}, phase + 2) * 0.1)) {}

  at::Tensor forward(const at::Tensor& x) {
    return x + x.matmul(up_.t()).tanh().matmul(down_.t()) + bias_;
  }

 private:
  at::Tensor up_, down_, bias_;
};
UNIT(Layer);

/// Its gradients are not close to 0, so that rounding decides no direction.
class NetImpl : public torch::nn::Module {
 public:
  NetImpl() : table_(register_module("table", torch::nn::Embedding(kRows, kWidth))) {
    table_->weight.set_data(wave({kRows, kWidth}, 3));
    for (int i = 0; i < 2; ++i) {
      layers_.push_back(register_module("layer" + std::to_string(i), Layer(i + 0.5)));
    }
    head_ = register_parameter("head", wave({2, kWidth}, 5));
  }

  at::Tensor loss(const at::Tensor& rows, int64_t step) {
    at::Tensor x = at::embedding(table_->weight, rows);
    for (auto& layer : layers_) x = layer(x);
    const at::Tensor targets = wave({kRows, 2}, static_cast<double>(step)).to(rows.device());
    const at::Tensor target = targets.index_select(0, rows);
    return at::mse_loss(x.matmul(head_.t()), target);
  }

 private:
  torch::nn::Embedding table_;
  std::vector<Layer> layers_;
  at::Tensor head_;
};

/// How the ranks train together.
struct Layout {
  std::string name;
  std::optional<ShardingStrategy> strategy = std::nullopt;
  bool offload = false;
};

const Layout kDdp{.name = "DDP"};
const Layout kFullShard{.name = "FULL_SHARD", .strategy = ShardingStrategy::full_shard};
const Layout kShardGradOp{.name = "SHARD_GRAD_OP", .strategy = ShardingStrategy::shard_grad_op};
const Layout kNoShard{.name = "NO_SHARD", .strategy = ShardingStrategy::no_shard};
const Layout kHybridShard{.name = "HYBRID_SHARD", .strategy = ShardingStrategy::hybrid_shard};
const Layout kOffload{
    .name = "cpu_offload", .strategy = ShardingStrategy::full_shard, .offload = true};

std::string fields(const std::string& optimizer) {
  const auto& declaration = *Registry<Optimizer>::instance().at(optimizer).declaration();
  return declaration.find("weight_decay") == nullptr ? "{}" : "{weight_decay: 0.1}";
}

/// A training of the net on this rank.
class Training {
 public:
  explicit Training(const std::string& optimizer)
      : optimizer_(make_registered<Optimizer>(optimizer, fields(optimizer))) {
    bind();
  }
  Training(const std::string& optimizer, const Layout& layout, const World& world)
      : ranks_(world.ranks()),
        device_(world.device()),
        optimizer_(make_registered<Optimizer>(optimizer, fields(optimizer))) {
    if (layout.strategy) {
      engine_ = prepare_fsdp(net_, ranks_, *layout.strategy, {}, /*sync_module_states=*/true,
                             {.device = device_, .cpu_offload = layout.offload});
    } else {
      engine_ = prepare_ddp(net_, ranks_);
    }
    bind();
  }

  void step(int64_t number) {
    const int64_t rows = kRows / ranks_.world_size();
    const at::Tensor mine =
        at::arange(ranks_.rank() * rows, (ranks_.rank() + 1) * rows, at::kLong).to(device_);
    const auto loss = [&] { return Loss(net_.loss(mine, number)); };
    (engine_ ? engine_->run(loss, /*synchronize=*/true) : loss()).total().backward();
    optimizer_->step_by(1 / static_cast<double>(number));
    for (const auto& local : locals_) local.tensor.mutable_grad().reset();
  }

  /// As a checkpoint takes and fills them.
  std::vector<ShardedTensorView> views() const {
    std::vector<ShardedTensorView> views;
    for (const NamedParameter& local : locals_) views.push_back(view_of(local));
    for (auto& view : optimizer_->state()) views.push_back(std::move(view));
    return views;
  }

 private:
  void bind() {
    locals_ = local_parameters(net_, engine_.get());
    ParameterGroup decay{.label = "decay", .weight_decay = true, .parameters = {}};
    ParameterGroup no_decay{.label = "no decay", .weight_decay = false, .parameters = {}};
    for (const NamedParameter& local : locals_) {
      (local.name.ends_with("bias") ? no_decay : decay).parameters.push_back(local);
    }
    optimizer_->join(ranks_);
    optimizer_->bind({decay, no_decay});
  }

  Ranks ranks_;
  at::Device device_ = at::kCPU;
  NetImpl net_;
  std::unique_ptr<ParallelEngine> engine_;
  std::shared_ptr<Optimizer> optimizer_;
  std::vector<NamedParameter> locals_;
};

// Parts are of the wholes that `alone` has, weights and state alike.
double difference(const Training& training, const Training& alone) {
  std::map<std::string, at::Tensor> wholes;
  for (const auto& view : alone.views()) wholes[view.name] = view.local.flatten();
  double most = 0;
  for (const auto& view : training.views()) {
    const at::Tensor expected = wholes.at(view.name).slice(0, view.begin, view.end);
    if (expected.numel() == 0) continue;
    most = std::max(most, view.local.flatten().sub(expected).abs().max().item().toDouble());
  }
  return most;
}

void train_alike(const std::string& optimizer, const Layout& layout, const World& world) {
  const std::string who = optimizer + ", " + layout.name;
  Training alone(optimizer);
  Training training(optimizer, layout, world);
  const double before = difference(training, alone);
  require(before == 0, who + " begins alike");
  for (int64_t step = 1; step <= kSteps; ++step) {
    alone.step(step);
    training.step(step);
  }
  const double most = difference(training, alone);
  require(most < 1e-9, fmt::format("{}: differs by {}", who, most));
}

void resume_bitwise(const std::string& optimizer, const Layout& layout, const World& world) {
  Training whole(optimizer, layout, world);
  Training resumed(optimizer, layout, world);
  for (int64_t step = 1; step <= kSteps / 2; ++step) whole.step(step);
  const auto saved = whole.views();
  const auto filled = resumed.views();
  require(saved.size() == filled.size(), "as many views");
  for (std::size_t i = 0; i < saved.size(); ++i) {
    require(saved[i].name == filled[i].name, saved[i].name);
    at::Tensor place = filled[i].local;
    place.copy_(saved[i].local);
  }
  for (int64_t step = kSteps / 2 + 1; step <= kSteps; ++step) {
    whole.step(step);
    resumed.step(step);
  }
  const auto expected = whole.views();
  const auto found = resumed.views();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    require(found[i].local.equal(expected[i].local),
            optimizer + ", " + layout.name + " resumed: " + found[i].name);
  }
}

struct Case {
  std::string optimizer;
  Layout layout;
};

// Those that exchange more than gradients first.
std::vector<std::string> optimizers() {
  auto names = Registry<Optimizer>::instance().table().names();
  std::ranges::stable_partition(
      names, [](const std::string& name) { return name == "adafactor" || name == "muon"; });
  std::ranges::stable_partition(names, [](const std::string& name) { return name == "muon"; });
  return names;
}

std::vector<Case> all_in(const std::vector<Layout>& layouts) {
  std::vector<Case> cases;
  for (const std::string& optimizer : optimizers()) {
    for (const Layout& layout : layouts) cases.push_back({optimizer, layout});
  }
  return cases;
}

void check_in(const World& world, const std::vector<Case>& cases) {
  at::set_num_threads(1);  // more would only wait for each other
  for (const Case& each : cases) {
    train_alike(each.optimizer, each.layout, world);
    resume_bitwise(each.optimizer, each.layout, world);
  }
}

TEST(EveryOptimizer, IsTheSameOnTwoRanks) {
  const auto cases = all_in({kDdp, kFullShard});
  const auto outcome = in_ranks(2, [&](World& world) { check_in(world, cases); });
  EXPECT_EQ(outcome.message, "");
}

TEST(EveryOptimizer, IsTheSameInFourShards) {
  const auto cases = sample_of(all_in({kFullShard}), 3, "optimizers in four shards");
  const auto outcome = in_ranks(4, [&](World& world) { check_in(world, cases); });
  EXPECT_EQ(outcome.message, "");
}

// Two hosts: two copies of two shards.
TEST(EveryOptimizer, IsTheSameUnderEveryOtherStrategy) {
  const auto cases = sample_of(all_in({kHybridShard, kNoShard, kShardGradOp}), 4,
                               "optimizers under a sharding strategy");
  const auto outcome = in_ranks(
      4, [&](World& world) { check_in(world, cases); }, {}, /*ranks_per_host=*/2);
  EXPECT_EQ(outcome.message, "");
}

// The model is on a device, and what the optimizer moves in host memory.
TEST(EveryOptimizer, IsTheSameWithOffload) {
  const auto cases = sample_of(all_in({kOffload}), 2, "optimizers with offload");
  const auto outcome = test_device::in_device_ranks(
      2, [&](test_device::Worlds& worlds) { check_in(worlds.on_device, cases); });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
