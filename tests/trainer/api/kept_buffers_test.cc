// SPDX-License-Identifier: Apache-2.0
// Micro-batches that do not count: ranks that have nothing left of an epoch run the others' passes.

#include "trainer/api/kept_buffers.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/model.h"
#include "trainer/api/state.h"
#include "trainer/api/task_model.h"
#include "trainer/api/unit.h"
#include "trainer/data/loader.h"
#include "trainer/mixins/activation_checkpointing_mixin.h"
#include "trainer/mixins/parallel_mixin.h"

namespace phalanx {
namespace {

using tiny::spy;

constexpr int64_t kFeatures = 3;
constexpr int64_t kPlaces = 4;

/// A model with batch statistics.
class Predictor {
 public:
  static constexpr std::string_view kInterface = "Predictor";

  virtual ~Predictor() = default;

  /// [samples] for [samples, kFeatures, kPlaces].
  virtual at::Tensor predict(const at::Tensor& x) = 0;
};

class NormedImpl : public torch::nn::Module, public Unit {
 public:
  NormedImpl() : weight_(register_parameter("weight", at::ones({kFeatures, 1}))) {
    norm_ = register_module("norm", torch::nn::BatchNorm1d(kFeatures));
  }
  at::Tensor forward(const at::Tensor& x) { return norm_->forward(x * weight_).tanh(); }

 private:
  at::Tensor weight_;
  torch::nn::BatchNorm1d norm_{nullptr};
};
UNIT(Normed);

class Net : public Model<Predictor> {
 public:
  Net() : head_(register_parameter("head", at::ones({kFeatures}))) {
    normed_ = register_module("normed", Normed());
  }
  at::Tensor predict(const at::Tensor& x) override { return normed_(x).mean(2).matmul(head_); }

 private:
  Normed normed_{nullptr};
  at::Tensor head_;
};

struct Rows : Batch {
  std::vector<at::Tensor*> tensors() override { return {&x, &y}; }

  at::Tensor x;
  at::Tensor y;
};

class RowData : public Dataset {
 public:
  int64_t size() const override { return 5; }
  std::string fingerprint() const override { return "rows"; }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override {
    const at::Tensor i = at::tensor(at::ArrayRef<int64_t>(indices.data(), indices.size())) + 1;
    auto rows = std::make_unique<Rows>();
    rows->x = (i.view({-1, 1, 1}) *
               at::arange(1, kFeatures * kPlaces + 1, at::kFloat).view({1, kFeatures, kPlaces}))
                  .sin();
    rows->y = i.to(at::kFloat).cos();
    rows->samples = rows->tokens = i.numel();
    return rows;
  }
};

/// Least squares by the count that a batch tells.
class ByCount : public Task<Rows, Predictor> {
 public:
  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    if (phase == Phase::validate) return nullptr;
    return load(std::make_shared<RowData>(), {.shuffle = false, .num_workers = 0}, request, true);
  }
  Loss compute_loss(Predictor& model, const Rows& batch, const State&) override {
    seen.emplace_back(batch.tokens, batch.counts);
    const at::Tensor error = (model.predict(batch.x) - batch.y).square();
    return error.sum() / static_cast<double>(batch.tokens);
  }

  std::vector<std::pair<int64_t, bool>> seen;  ///< For each micro-batch: its tokens, if it counts.
};

class Sgd : public Optimizer {
 public:
  double base_lr() const override { return 0.1; }
  void bind(std::vector<ParameterGroup> groups) override { groups_ = std::move(groups); }
  void step(double lr) override {
    const c10::NoGradGuard no_grad;
    for (auto& group : groups_) {
      for (auto& parameter : group.parameters) {
        const at::Tensor& gradient = parameter.tensor.grad();
        if (gradient.defined()) parameter.tensor.sub_(gradient, lr);
      }
    }
  }
  std::vector<ShardedTensorView> state() override { return {}; }

 private:
  std::vector<ParameterGroup> groups_;
};

std::string text_of(const std::vector<at::Tensor>& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = tensor.to(at::kDouble).flatten();
    for (int64_t i = 0; i < values.numel(); ++i) {
      text += fmt::format("{:a} ", values[i].item<double>());
    }
  }
  return text;
}

/// The buffers of both ranks after both steps of an epoch: of the second step, rank 0 has the one
/// sample that is left and rank 1 none.
struct Buffers {
  std::vector<std::string> first_step;   ///< By rank.
  std::vector<std::string> second_step;  ///< Likewise.
};

using Check = std::function<void(const Ranks&, const Buffers&)>;

TrainerSetup setup_of(const ParallelConfig& parallel, CheckpointedUnits recomputed,
                      int64_t batch_size) {
  TrainerSetup setup = tiny::make_setup(
      {}, {.max_epochs = 1, .batch_size = batch_size}, {.name = "tiny", .exp_dir = "nowhere"},
      {{"parallel", {}, config::write(parallel)},
       {"activation_checkpointing",
        {},
        config::write(ActivationCheckpointing{.policy = recomputed})},
       {"spy", {}, config::Node::map()}});
  setup.components.task = std::make_shared<ByCount>();
  setup.components.model = std::make_shared<Net>();
  setup.components.optimizer = std::make_shared<Sgd>();
  return setup;
}

using NetTrainer = Trainer<ParallelMixin, ActivationCheckpointingMixin, tiny::Spy>;

// What does not hold on a rank, or nothing.
std::string train_in_two(const ParallelConfig& parallel, CheckpointedUnits recomputed,
                         const Check& check) {
  const auto body = [&](World& world) {
    std::vector<std::string> buffers;
    spy = {};
    spy.at_step_end = [&](TrainerBase& trainer) {
      buffers.push_back(text_of(trainer.model().module().buffers()));
    };
    TrainerSetup setup = setup_of(parallel, recomputed, /*batch_size=*/2);
    const auto task = std::make_shared<ByCount>();
    setup.components.task = task;
    setup.ranks = world.ranks();
    setup.device = world.device();
    NetTrainer trainer(std::move(setup));
    trainer.train();

    const bool is_first = world.ranks().is_first();
    require(task->seen == std::vector<std::pair<int64_t, bool>>{{2, true}, {1, is_first}},
            "each micro-batch has samples, and the last one of rank 1 does not count");
    const StepResult& last = spy.results.at(1);
    require(last.samples == 1 && last.tokens == 1, "one sample counts in the last step");
    const double own_loss = last.losses().front().second;
    require(std::isfinite(own_loss) && (own_loss == 0) == !is_first, "rank 0 has all of its loss");
    for (const ShardedTensorView& view : trainer.task_model().views()) {
      require(view.local.isfinite().all().item<bool>(), "gradients are numbers");
    }
    check(world.ranks(), {.first_step = world.ranks().all_gather(buffers.at(0)),
                          .second_step = world.ranks().all_gather(buffers.at(1))});
  };
  return in_ranks(2, body).message;
}

void require_own_statistics(const Ranks&, const Buffers& buffers) {
  require(buffers.first_step[0] != buffers.first_step[1], "ranks have statistics of their own");
  require(buffers.second_step[0] != buffers.first_step[0], "rank 0's have moved");
  require(buffers.second_step[1] == buffers.first_step[1], "rank 1's have not");
}

TEST(UncountedMicroBatch, MovesNoStatisticsInDdp) {
  ParallelConfig parallel;
  parallel.ddp.broadcast_buffers = false;
  EXPECT_EQ(train_in_two(parallel, CheckpointedUnits::none, require_own_statistics), "");
}

TEST(UncountedMicroBatch, MovesNoStatisticsWhereItsForwardPassIsComputedAgain) {
  ParallelConfig parallel;
  parallel.ddp.broadcast_buffers = false;
  EXPECT_EQ(train_in_two(parallel, CheckpointedUnits::unit, require_own_statistics), "");
}

TEST(UncountedMicroBatch, MovesNoStatisticsInFsdp) {
  ParallelConfig parallel;
  parallel.use_fsdp = true;
  parallel.sharding_strategy = ShardingStrategy::full_shard;
  parallel.fsdp.broadcast_buffers = false;
  EXPECT_EQ(train_in_two(parallel, CheckpointedUnits::none, require_own_statistics), "");
}

// A micro-batch that does not count is passed for the others' statistics, which move its own.
TEST(UncountedMicroBatch, TakesPartInStatisticsOfAllRanks) {
  for (const bool use_fsdp : {false, true}) {
    for (const auto recomputed : {CheckpointedUnits::none, CheckpointedUnits::unit}) {
      ParallelConfig parallel;
      parallel.use_fsdp = use_fsdp;
      parallel.sync_batchnorm = true;
      parallel.ddp.broadcast_buffers = parallel.fsdp.broadcast_buffers = false;
      const auto check = [](const Ranks&, const Buffers& buffers) {
        require(buffers.first_step[0] == buffers.first_step[1], "statistics of all ranks");
        require(buffers.second_step[0] == buffers.second_step[1], "also in the last step");
        require(buffers.second_step[0] != buffers.first_step[0], "which moves them");
      };
      EXPECT_EQ(train_in_two(parallel, recomputed, check), "")
          << (use_fsdp ? "FSDP" : "DDP")
          << (recomputed == CheckpointedUnits::none ? "" : ", again");
    }
  }
}

TEST(UncountedMicroBatch, TrainsWithSyncBatchnormAsOneRankDoes) {
  const auto body = [](World& world) {
    ParallelConfig parallel;
    parallel.sync_batchnorm = true;
    TrainerSetup setup = setup_of(parallel, CheckpointedUnits::none, /*batch_size=*/2);
    setup.ranks = world.ranks();
    setup.device = world.device();
    spy = {};
    NetTrainer together(std::move(setup));
    together.train();
    NetTrainer alone(setup_of({}, CheckpointedUnits::none, /*batch_size=*/4));
    alone.train();
    const auto found = together.task_model().views();
    const auto expected = alone.task_model().views();
    require(found.size() == expected.size() && found.size() == 7, "as many tensors");
    for (std::size_t i = 0; i < found.size(); ++i) {
      require(found[i].local.allclose(expected[i].local, 1e-5, 1e-6), found[i].name);
    }
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

TEST(UncountedMicroBatch, LeavesTheStatisticsThatRank0HasSent) {
  EXPECT_EQ(train_in_two({}, CheckpointedUnits::none,
                         [](const Ranks&, const Buffers& buffers) {
                           require(buffers.second_step[0] != buffers.first_step[0],
                                   "rank 0's have moved");
                           require(buffers.second_step[1] == buffers.first_step[0],
                                   "rank 1 has those that rank 0 had before the step");
                         }),
            "");
}

std::unique_ptr<Batch> row(int64_t index, bool counts) {
  auto batch = RowData().batch(std::span(&index, 1));
  batch->counts = counts;
  return batch;
}

// As a step of a task's own may order its passes.
TEST(KeptBuffers, LeaveWhatAPassBetweenHasMoved) {
  const auto task = std::make_shared<ByCount>();
  const auto alone = std::make_shared<Net>();
  const auto net = std::make_shared<Net>();
  const auto counting = row(1, /*counts=*/true);
  const auto left_out = row(2, /*counts=*/false);
  const State state;
  TaskModel(task, alone).forward(*counting, state);

  TaskModel model(task, net);
  const Loss first = model.forward(*left_out, state);
  const Loss second = model.forward(*counting, state);
  second.total().backward();
  model.end_backward();
  first.total().backward();
  model.end_backward();
  EXPECT_EQ(text_of(net->buffers()), text_of(alone->buffers()));
}

TEST(KeptBuffers, LeaveWhatTheTasksOwnPassBetweenHasMoved) {
  const auto task = std::make_shared<ByCount>();
  const auto alone = std::make_shared<Net>();
  const auto net = std::make_shared<Net>();
  const at::Tensor x = at::ones({2, kFeatures, kPlaces}).cumsum(2);
  alone->predict(x);

  TaskModel model(task, net);
  const Loss first = model.forward(*row(2, /*counts=*/false), State());
  model.run([&] { return std::vector{net->predict(x)}; }, /*synchronize=*/true);
  first.total().backward();
  model.end_backward();
  EXPECT_EQ(text_of(net->buffers()), text_of(alone->buffers()));
}

TEST(KeptBuffers, AreGivenBackInPlace) {
  Net net;
  const std::vector<at::Tensor> buffers = net.buffers();
  const std::string before = text_of(buffers);
  KeptBuffers kept(net);
  net.predict(at::randn({2, kFeatures, kPlaces}));
  EXPECT_NE(text_of(buffers), before);
  kept.give_back();
  EXPECT_EQ(text_of(buffers), before);
}

}  // namespace
}  // namespace phalanx
