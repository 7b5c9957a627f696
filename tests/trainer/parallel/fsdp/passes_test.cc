// What a sharded model's forward and backward passes may be, and what they leave behind.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/net.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/parallel/fsdp/fsdp.h"

namespace phalanx::sharding::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string failure(int64_t processes, const std::function<void(const Ranks&)>& body,
                    const JoinOptions& options = {}) {
  const auto in_world = [&](World& world) { body(world.ranks()); };
  return in_ranks(processes, in_world, options).message;
}

at::Tensor rows(int64_t phase) {
  return Net::wave({3, kInputs}, static_cast<double>(phase)).to(at::kFloat);
}

/// Whether the gradients of the parts are those of so many backward passes in a row, each of the
/// mean over the ranks.
void require_gradients_of(int64_t passes, Net& net, const FullyShardedDataParallel& fsdp,
                          int64_t ranks) {
  Net plain;
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (int64_t r = 0; r < ranks; ++r) {
      (plain.loss(rows(10 * pass + r), {}) / static_cast<double>(ranks)).backward();
    }
  }
  for (const auto& item : plain.named_parameters()) {
    const NamedParameter local = fsdp.local({item.key(), net.named_parameters()[item.key()]});
    require(local.tensor.grad().defined() == item.value().grad().defined(), item.key());
    if (!item.value().grad().defined()) continue;
    const at::Tensor expected =
        item.value().grad().view(-1).slice(0, local.shard->begin, local.shard->end);
    require(at::allclose(local.tensor.grad(), expected, 1e-5, 1e-6), item.key());
  }
}

TEST(Passes, AddTheirGradientsUntilTheseAreZeroed) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net net;
                      const auto fsdp = prepare_fsdp(net, ranks);
                      for (int64_t pass = 0; pass < 3; ++pass) {
                        const at::Tensor own = rows(10 * pass + ranks.rank());
                        fsdp->forward([&] { return net.loss(own, {}); }).backward();
                        require_gradients_of(pass + 1, net, *fsdp, ranks.world_size());
                      }
                    }),
            "");
}

/// What `backward` throws; afterwards a step is as if it had not been.
std::string refusal(const Ranks& ranks,
                    const std::function<void(Net&, FullyShardedDataParallel&)>& backward) {
  Net net;
  const auto fsdp = prepare_fsdp(net, ranks);
  std::string message;
  try {
    backward(net, *fsdp);
  } catch (const std::exception& error) {
    message = error.what();
  }
  for (auto& local : fsdp->local_parameters()) local.tensor.mutable_grad().reset();
  fsdp->forward([&] { return net.loss(rows(ranks.rank()), {}); }).backward();
  require_gradients_of(1, net, *fsdp, ranks.world_size());
  return message;
}

void require_refused(const std::string& message) {
  require(message.find("a forward pass of a sharded model that is over") != std::string::npos,
          message);
}

TEST(Passes, HaveOneBackwardPassEach) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      require_refused(refusal(ranks, [](Net& net, FullyShardedDataParallel& fsdp) {
                        const at::Tensor loss = fsdp.forward([&] { return net.loss(rows(0), {}); });
                        loss.backward({}, /*retain_graph=*/true);
                        loss.backward();
                      }));
                    }),
            "");
}

TEST(Passes, AreOverWhenTheNextBegins) {
  EXPECT_EQ(
      failure(2,
              [](const Ranks& ranks) {
                require_refused(refusal(ranks, [](Net& net, FullyShardedDataParallel& fsdp) {
                  const at::Tensor first = fsdp.forward([&] { return net.loss(rows(0), {}); });
                  const at::Tensor second = fsdp.forward([&] { return net.loss(rows(1), {}); });
                  (first + second).backward();
                }));
                require_refused(refusal(ranks, [](Net& net, FullyShardedDataParallel& fsdp) {
                  const at::Tensor loss = fsdp.forward([&] { return net.loss(rows(0), {}); });
                  {
                    const at::NoGradGuard no_grad;
                    fsdp.forward([&] { return net.loss(rows(1), {}); });
                  }
                  loss.backward();
                }));
              }),
      "");
}

TEST(Passes, OfOtherKindsOnARankAreFound) {
  const std::string message = failure(
      2,
      [](const Ranks& ranks) {
        Net net;
        const auto fsdp = prepare_fsdp(net, ranks);
        const auto train = [&] { fsdp->forward([&] { return net.loss(rows(0), {}); }).backward(); };
        const auto evaluate = [&] {
          const at::NoGradGuard no_grad;
          fsdp->forward([&] { return net.loss(rows(0), {}); });
        };
        for (int step = 0; step < 2; ++step) {
          train();
          evaluate();
        }
        train();
        if (ranks.rank() == 0) return train();
        try {
          evaluate();
        } catch (const CommunicationError& error) {
          throw std::runtime_error(error.what());  // of the two, this one is to be told
        }
      },
      {.timeout = std::chrono::seconds(2)});
  EXPECT_THAT(message, AllOf(HasSubstr("rank 1 begins a pass without a backward one"),
                             HasSubstr("parallel.timeout")));
}

TEST(Passes, AreAlikeWhereAFewRanksKeepUnitsWhole) {
  EXPECT_EQ(
      failure(4,
              [](const Ranks& ranks) {
                const auto train = [&](std::optional<ReshardAfterForward> reshard) {
                  Net net;
                  FsdpOptions options;
                  options.reshard_after_forward = reshard;
                  const auto fsdp = prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                  std::vector<at::Tensor> values;
                  for (int64_t step = 0; step < 3; ++step) {
                    const at::Tensor loss =
                        fsdp->forward([&] { return net.loss(rows(4 * step + ranks.rank()), {}); });
                    for (const auto& item : net.named_parameters()) {
                      const bool is_in_unit = item.key().ends_with(".weight");
                      const bool is_freed = item.value().storage().nbytes() == 0;
                      require(!is_in_unit || is_freed || reshard == ReshardAfterForward(false),
                              item.key() + " is given up");
                    }
                    loss.backward();
                    values.push_back(loss.detach());
                    descend(fsdp->local_parameters());
                  }
                  for (const auto& local : fsdp->local_parameters()) {
                    values.push_back(local.tensor.detach());
                  }
                  return values;
                };
                const auto expected = train(true);
                for (const ReshardAfterForward reshard :
                     {ReshardAfterForward(int64_t{2}), ReshardAfterForward(int64_t{4}),
                      ReshardAfterForward(false)}) {
                  const auto found = train(reshard);
                  for (size_t i = 0; i < expected.size(); ++i) {
                    require(found[i].equal(expected[i]), fmt::format("value {}", i));
                  }
                }
              }),
      "");
}

TEST(Passes, KeepAPartForTheBackwardPassOfAFewRanks) {
  EXPECT_EQ(
      failure(4,
              [](const Ranks& ranks) {
                Net net;
                FsdpOptions options;
                options.reshard_after_forward = int64_t{2};
                const auto fsdp = prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                fsdp->forward([&] { return net.loss(rows(0), {}); });
                for (const auto& unit : fsdp->summary()) {
                  const auto uses = fsdp->memory();
                  const auto use = std::find_if(uses.begin(), uses.end(), [&](const MemoryUse& of) {
                    return of.what == "parameters, gathered: " + unit.name;
                  });
                  if (unit.name == "unused" || unit.name.empty()) continue;
                  require(use != uses.end() && use->bytes == unit.whole_bytes / 2, unit.name);
                }
              }),
      "");
}

TEST(Passes, RefuseANumberOfRanksThatDoesNotDivide) {
  EXPECT_THAT(failure(4,
                      [](const Ranks& ranks) {
                        Net net;
                        FsdpOptions options;
                        options.reshard_after_forward = int64_t{3};
                        prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                      }),
              AllOf(HasSubstr("reshard_after_forward is 3"), HasSubstr("can be 1, 2, 4")));
}

TEST(Passes, ComeToRanksThatAreToldToShardAlike) {
  EXPECT_THAT(failure(4,
                      [](const Ranks& ranks) {
                        Net net;
                        FsdpOptions options;
                        options.shard_group_size = ranks.rank() == 2 ? 4 : 2;
                        prepare_fsdp(net, ranks, ShardingStrategy::hybrid_shard, options);
                      }),
              AllOf(HasSubstr("the way to shard"), HasSubstr("rank 2")));
  EXPECT_THAT(failure(2,
                      [](const Ranks& ranks) {
                        Net net;
                        FsdpOptions options;
                        if (ranks.rank() == 1) options.backward_prefetch = BackwardPrefetch::none;
                        prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                      }),
              AllOf(HasSubstr("the way to shard"), HasSubstr("backward_prefetch")));
}

/// A unit around many.
class StageImpl : public torch::nn::Module, public Unit {
 public:
  StageImpl() {
    for (int i = 0; i < 6; ++i) {
      blocks_.push_back(register_module(std::to_string(i), Block()));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor hidden = input;
    for (auto& block : blocks_) hidden = block(hidden);
    return hidden;
  }
  std::vector<Block>& blocks() { return blocks_; }

 private:
  std::vector<Block> blocks_;
};
UNIT(Stage);

class Staged : public torch::nn::Module {
 public:
  Staged() { stage_ = register_module("stage", Stage()); }

  at::Tensor loss(const at::Tensor& input) { return stage_(input).square().mean(); }
  /// How many units have memory for the whole.
  int64_t whole() {
    return std::count_if(stage_->blocks().begin(), stage_->blocks().end(), [](Block& block) {
      return block->parameters().front().storage().nbytes() > 0;
    });
  }

 private:
  Stage stage_{nullptr};
};

TEST(Passes, GiveUpWhatIsOnlyRecomputed) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      torch::manual_seed(3);
                      Staged net;
                      const auto fsdp = prepare_fsdp(net, ranks);
                      checkpoint_activations(net, {.policy = CheckpointedUnits::unit});
                      int64_t most = 0;
                      for (auto& parameter : net.parameters()) {
                        parameter.register_hook(
                            [&](const at::Tensor&) { most = std::max(most, net.whole()); });
                      }
                      const at::Tensor input = Net::wave({3, kWidth}, 1).to(at::kFloat);
                      fsdp->forward([&] { return net.loss(input); }).backward();
                      require(most >= 1 && most <= 2, fmt::format("{} units are whole", most));
                    }),
            "");
}

}  // namespace
}  // namespace phalanx::sharding::testing
