// SPDX-License-Identifier: Apache-2.0
// What each option of DDP does, as one rank sees it.

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/parallel/ddp_options_of.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/schema.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/parallel_config.h"
#include "trainer/ranks/ranks.h"
#include "trainer/simulated/fake_ranks.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kWidth = 64;

/// Four layers of 16.25 KiB each, and a buffer.
struct Net : torch::nn::Module {
  Net() {
    for (const char* name : {"a", "b", "c", "d"}) {
      layers.push_back(register_module(name, torch::nn::Linear(kWidth, kWidth)));
    }
    shift = register_buffer("shift", at::zeros({kWidth}));
  }

  at::Tensor forward(std::size_t used) {
    at::Tensor x = at::ones({2, kWidth});
    for (std::size_t i = 0; i < used; ++i) x = layers[i]->forward(x);
    return (x + shift).sum();
  }

  std::vector<torch::nn::Linear> layers;
  at::Tensor shift;
};

/// Rank 0 of 2.
struct DdpOption : ::testing::Test {
  void wrap(const std::string& yaml, bool sync_module_states = true) {
    net = std::make_unique<Net>();
    ddp = prepare_ddp(*net, ranks, ddp_options_of(yaml), sync_module_states);
  }

  void backward(std::size_t used = 4) {
    ddp->forward([&] { return net->forward(used); }).backward();
  }

  /// The collectives of a step once the buckets are found, which takes two.
  std::vector<Collective> of_a_step() {
    backward();
    backward();
    log->clear();
    backward();
    return log->collectives();
  }

  static int64_t count(const std::vector<Collective>& all, CollectiveKind kind) {
    return std::ranges::count(all, kind, &Collective::kind);
  }

  std::shared_ptr<CollectiveLog> log = std::make_shared<CollectiveLog>();
  Ranks ranks = fake_ranks(0, 2, 2, log);
  std::unique_ptr<Net> net;
  std::unique_ptr<DistributedDataParallel> ddp;
};

TEST_F(DdpOption, BucketCapMbIsTheSizeOfWhatIsReducedTogether) {
  wrap("{}");
  EXPECT_EQ(count(of_a_step(), CollectiveKind::all_reduce), 1);
  wrap("bucket_cap_mb: 0.01");
  EXPECT_GE(count(of_a_step(), CollectiveKind::all_reduce), 4);
}

TEST_F(DdpOption, BroadcastBuffersBringsRankZerosBeforeEachPass) {
  wrap("broadcast_buffers: true");
  EXPECT_EQ(count(of_a_step(), CollectiveKind::broadcast), 1);
  wrap("broadcast_buffers: false");
  EXPECT_EQ(count(of_a_step(), CollectiveKind::broadcast), 0);
}

TEST_F(DdpOption, SyncModuleStatesBringsRankZerosValuesFirst) {
  wrap("{}", true);
  EXPECT_GT(count(log->collectives(), CollectiveKind::broadcast), 0);
  log->clear();
  wrap("{}", false);
  EXPECT_EQ(count(log->collectives(), CollectiveKind::broadcast), 0);
}

TEST_F(DdpOption, FindUnusedParametersLetsTheLossDependOnSome) {
  wrap("find_unused_parameters: false");
  backward(3);
  EXPECT_THAT([&] { backward(3); },
              ThrowsMessage<std::logic_error>(
                  AllOf(HasSubstr("DDP: no gradient came for d.weight, d.bias of 8 parameters"),
                        HasSubstr("set parallel.ddp.find_unused_parameters: true"),
                        HasSubstr("DdpOptions::find_unused_parameters"))));
  wrap("find_unused_parameters: true");
  for (int step = 0; step < 3; ++step) EXPECT_NO_THROW(backward(3));
  EXPECT_NO_THROW(backward(4));
}

TEST_F(DdpOption, UnusedParametersAreNamedWhereTwoPassesAreReducedTogether) {
  wrap("find_unused_parameters: false");
  const at::Tensor first = ddp->forward([&] { return net->forward(2); });
  const at::Tensor second = ddp->forward([&] { return net->forward(3); });
  EXPECT_THAT([&] { (first + second).backward(); },
              ThrowsMessage<std::exception>(
                  HasSubstr("no gradient came for d.weight, d.bias of 8 parameters")));
}

TEST_F(DdpOption, StaticGraphLetsTheSameParametersBeUnused) {
  wrap("static_graph: true");
  for (int step = 0; step < 3; ++step) EXPECT_NO_THROW(backward(3));
}

TEST_F(DdpOption, StaticGraphIsNamedWhereParametersAreLeftOutLater) {
  wrap("static_graph: true");
  for (const std::size_t used : {4u, 4u, 3u}) backward(used);
  EXPECT_THAT([&] { backward(3); },
              ThrowsMessage<std::logic_error>(
                  AllOf(HasSubstr("no gradient came for d.weight, d.bias of 8 parameters"),
                        HasSubstr("parallel.ddp.static_graph says that all"))));
}

TEST_F(DdpOption, CheckReductionFindsAReductionThatWasNotFinished) {
  const c10::NoGradGuard no_grad;
  for (const bool checks : {false, true}) {
    wrap(checks ? "check_reduction: true" : "check_reduction: false");
    {
      const c10::AutoGradMode trains(true);
      backward(3);
    }
    const auto evaluate = [&] { ddp->forward([&] { return net->forward(4); }); };
    if (checks) {
      EXPECT_THAT(evaluate, ThrowsMessage<std::logic_error>(HasSubstr("d.weight, d.bias of 8")));
    } else {
      EXPECT_NO_THROW(evaluate());
    }
  }
}

// FSDP needs no find_unused_parameters: it takes passes that leave parameters out.
TEST(DdpOptions, HaveNoEffectInFsdpExceptFindUnusedParameters) {
  std::vector<std::string> expected;
  for (const config::Field& field : config::declaration<DdpOptions>().fields()) {
    if (field.name != "find_unused_parameters") expected.push_back("ddp." + field.name);
  }
  std::vector<std::string> warned;
  for (const auto& rule : config::declaration<ParallelConfig>().ineffective()) {
    if (rule.reason == "use_fsdp is true") warned = rule.fields;
  }
  EXPECT_THAT(warned, UnorderedElementsAreArray(expected));
}

TEST_F(DdpOption, GradientAsBucketViewKeepsGradientsInBuckets) {
  for (const bool in_buckets : {false, true}) {
    wrap(in_buckets ? "gradient_as_bucket_view: true" : "gradient_as_bucket_view: false");
    backward();
    const auto memory_of = [&](std::size_t layer) {
      return net->layers[layer]->weight.grad().storage().data();
    };
    EXPECT_EQ(memory_of(0) == memory_of(1), in_buckets);
  }
}

TEST_F(DdpOption, CommHookReducesTheBuckets) {
  const auto dtype_of = [&](const std::string& yaml) {
    wrap(yaml);
    const auto all = of_a_step();
    const auto reduced = std::ranges::find(all, CollectiveKind::all_reduce, &Collective::kind);
    return reduced == all.end() ? c10::ScalarType::Undefined : reduced->dtype;
  };
  EXPECT_EQ(dtype_of("comm_hook: null"), c10::ScalarType::Float);
  EXPECT_EQ(dtype_of("comm_hook: allreduce"), c10::ScalarType::Float);
  EXPECT_EQ(dtype_of("comm_hook: fp16_compress"), c10::ScalarType::Half);
  EXPECT_EQ(dtype_of("comm_hook: bf16_compress"), c10::ScalarType::BFloat16);
}

TEST_F(DdpOption, AMicroBatchWithoutSynchronizeReducesNothing) {
  wrap("{}");
  backward();
  log->clear();
  ddp->forward([&] { return net->forward(4); }, /*synchronize=*/false).backward();
  EXPECT_EQ(count(log->collectives(), CollectiveKind::all_reduce), 0);
}

}  // namespace
}  // namespace phalanx
