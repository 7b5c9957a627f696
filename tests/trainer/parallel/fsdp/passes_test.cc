// SPDX-License-Identifier: Apache-2.0
// What a sharded model's forward and backward passes may be, and what they leave behind.

#include <ATen/core/Formatting.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/gathered.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/random.h"

namespace phalanx::fsdp::testing {
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
      plain.loss(rows(10 * pass + r), {}).div(static_cast<double>(ranks)).backward();
    }
  }
  for (const auto& item : plain.named_parameters()) {
    const NamedParameter local = fsdp.local({item.key(), net.named_parameters()[item.key()]});
    require(local.tensor.grad().defined() == item.value().grad().defined(), item.key());
    if (!item.value().grad().defined()) continue;
    const at::Tensor expected =
        item.value().grad().view(-1).slice(0, local.shard->begin, local.shard->end);
    require(local.tensor.grad().allclose(expected, 1e-5, 1e-6), item.key());
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

// What is left of a backward pass that has thrown is gone, and the next step as if it had not been.
TEST(Passes, BeginAnewAfterABackwardPassThatThrows) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net net;
                      const auto fsdp = prepare_fsdp(net, ranks);
                      const at::Tensor loss = fsdp->forward([&] { return net.loss(rows(0), {}); });
                      loss.backward();
                      std::string message = "none";
                      try {
                        loss.backward();
                      } catch (const std::exception& error) {
                        message = error.what();
                      }
                      require(message.find("a second time") != std::string::npos, message);
                      for (auto& local : fsdp->local_parameters()) {
                        local.tensor.mutable_grad().reset();
                      }
                      fsdp->forward([&] { return net.loss(rows(ranks.rank()), {}); }).backward();
                      require_gradients_of(1, net, *fsdp, ranks.world_size());
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
        try {
          ranks.rank() == 0 ? train() : evaluate();
        } catch (const CommunicationError& error) {
          if (ranks.rank() == 1) {
            ranks.store().set("rank 1 is told", "");
            throw std::runtime_error(error.what());  // of the two, this one is to be told
          }
          // It serves the store that rank 1 still asks.
          ranks.store().get("rank 1 is told", std::chrono::seconds(20));
        }
      },
      {.timeout = std::chrono::seconds(2)});
  EXPECT_THAT(message, AllOf(HasSubstr("rank 1 begins a forward pass without gradients"),
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
                      require(!is_in_unit || is_given_up(item.value()) ||
                                  reshard == ReshardAfterForward(false),
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
                        if (ranks.rank() == 1) options.backward_prefetch.reset();
                        prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                      }),
              AllOf(HasSubstr("the way to shard"), HasSubstr("backward_prefetch")));
}

TEST(Passes, GiveUpWhatIsOnlyRecomputed) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      seed_everything(3);
                      Staged net;
                      const auto fsdp = prepare_fsdp(net, ranks);
                      checkpoint_activations(net, {.policy = CheckpointedUnits::unit});
                      size_t most = 0;
                      for (auto& parameter : net.parameters()) {
                        parameter.register_hook([&](const at::Tensor&) {
                          most = std::max(most, gathered_units(*fsdp).size());
                        });
                      }
                      const at::Tensor input = Net::wave({3, kWidth}, 1).to(at::kFloat);
                      fsdp->forward([&] { return net.loss(input); }).backward();
                      require(most >= 1 && most <= 2, fmt::format("{} units are whole", most));
                    }),
            "");
}

/// Ways to read a parameter of two dimensions, or to write it.
std::vector<std::pair<std::string, std::function<void(const at::Tensor&)>>> accesses() {
  return {
      {"arithmetic", [](const at::Tensor& p) { p.add(1); }},
      {"a sum", [](const at::Tensor& p) { p.sum(); }},
      {"a copy", [](const at::Tensor& p) { p.clone(); }},
      {"another dtype", [](const at::Tensor& p) { p.to(at::kDouble); }},
      {"a product", [](const at::Tensor& p) { p.matmul(p.t()); }},
      {"a layer",
       [](const at::Tensor& p) {
         tensors::linear(tensors::ones({2, p.size(1)}), p);
       }},
      {"a comparison", [](const at::Tensor& p) { p.equal(tensors::zeros(p.sizes())); }},
      {"an element", [](const at::Tensor& p) { p[0][0].item(); }},
      {"a typed element", [](const at::Tensor& p) { p[0][0].item<float>(); }},
      {"a pointer", [](const at::Tensor& p) { p.data_ptr(); }},
      {"a typed pointer", [](const at::Tensor& p) { p.data_ptr<float>(); }},
      {"a pointer to read", [](const at::Tensor& p) { p.const_data_ptr(); }},
      {"a pointer to write", [](const at::Tensor& p) { p.mutable_data_ptr<float>(); }},
      {"an accessor", [](const at::Tensor& p) { p.accessor<float, 2>(); }},
      {"a storage", [](const at::Tensor& p) { p.storage().data(); }},
      {"a print", [](const at::Tensor& p) { std::ostringstream() << p; }},
      {"a view", [](const at::Tensor& p) { p.view(-1).sum(); }},
      {"a row", [](const at::Tensor& p) { p[1].sum(); }},
      {"a slice", [](const at::Tensor& p) { p.slice(0, 1, 3).sum(); }},
      {"a transpose", [](const at::Tensor& p) { p.t().contiguous(); }},
      {"a broadcast",
       [](const at::Tensor& p) {
         p.unsqueeze(0).expand({3, -1, -1}).sum();
       }},
      {"an alias", [](const at::Tensor& p) { p.detach().abs(); }},
      {"a product in place", [](const at::Tensor& p) { p.detach().mul_(2); }},
      {"a fill", [](const at::Tensor& p) { p.detach().zero_(); }},
      {"a copy into it", [](const at::Tensor& p) { p.detach().copy_(tensors::ones(p.sizes())); }},
  };
}

void require_named(const std::string& name, const std::string& what,
                   const std::function<void()>& access) {
  std::string message = "nothing was thrown";
  try {
    access();
  } catch (const c10::Error& error) {
    message = error_text(error);
  }
  require(message.find("the parameter '" + name + "' of a sharded model has no values now") == 0,
          fmt::format("{} of {} is refused: {}", what, name, message));
}

void require_given_up(const Net& net, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const at::Tensor parameter = net.named_parameters()[name];
    for (const auto& [what, access] : accesses()) {
      require_named(name, what, [&, &access = access] { access(parameter); });
    }
  }
}

TEST(GivenUpParameters, AreNamedByWhateverReadsThem) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Net net;
                      const auto fsdp = prepare_fsdp(net, ranks);
                      const std::vector<std::string> of_units{
                          "first.inner.weight", "first.outer.weight", "unused.inner.weight"};
                      const auto require_all = [&] {
                        require_given_up(net, of_units);
                        require_given_up(net, {"embedding"});
                        const at::Tensor scale = net.named_parameters()["scale"];
                        require_named("scale", "the value", [&] { scale.item(); });
                        require_named("scale", "the number", [&] { scale.item<float>(); });
                      };
                      require_all();
                      const at::Tensor own = rows(ranks.rank());
                      const at::Tensor loss = fsdp->forward([&] { return net.loss(own, {}); });
                      require_given_up(net, of_units);
                      loss.backward();
                      require_all();
                      require_gradients_of(1, net, *fsdp, ranks.world_size());
                      fsdp->summon_full_params(
                          [&] { require(!is_given_up(net.parameters().front()), "summoned"); });
                      require_all();
                    }),
            "");
}

void require_views_refused(const std::vector<at::Tensor>& kept, const std::string& name) {
  for (const at::Tensor& view : kept) {
    require_named(name, "what was kept", [&] { view.sum(); });
  }
}

TEST(GivenUpParameters, AreNamedByViewsOfThem) {
  EXPECT_EQ(failure(2,
                    [](const Ranks& ranks) {
                      Keepers net;
                      FsdpOptions options;
                      options.forward_prefetch = true;
                      auto fsdp = prepare_fsdp(net, ranks, ShardingStrategy::full_shard, options);
                      for (int step = 0; step < 2; ++step) {
                        const at::Tensor loss = fsdp->forward([&] {
                          return net.loss([&] {
                            require_views_refused(net.kept_by_first(), "first.weight");
                            require_views_refused(net.kept_by_second(), "second.weight");
                          });
                        });
                        require_views_refused(net.kept_by_second(), "second.weight");
                        loss.backward();
                        require_views_refused(net.kept_by_first(), "first.weight");
                      }
                      fsdp->summon_full_params([&] {
                        for (const at::Tensor& kept : net.kept_by_first()) {
                          require(kept.eq(1).all().item<bool>(), "the view shows the values again");
                        }
                      });
                      const at::Tensor loss = fsdp->forward([&] { return net.loss([] {}); });
                      fsdp.reset();
                      require_views_refused(net.kept_by_first(), "first.weight");
                      require_named("second.weight", "the backward pass", [&] { loss.backward(); });
                    }),
            "");
}

}  // namespace
}  // namespace phalanx::fsdp::testing
