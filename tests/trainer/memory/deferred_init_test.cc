// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/deferred_init.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <gtest/gtest.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using torch::nn::Module;

/// What authors do while they build a model.
class Usual : public Module {
 public:
  Usual() {
    register_module("embedding",
                    torch::nn::Embedding(torch::nn::EmbeddingOptions(11, 7).padding_idx(2)));
    register_module("linear", torch::nn::Linear(7, 13));
    register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({13})));
    register_parameter("scale", torch::ones({}));
    register_parameter("drawn", torch::randn({6, 5}));
    register_buffer("shift", torch::zeros({4}));
    register_buffer("places", torch::arange(9));
    // The second pass that many models make over all their parameters.
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      if (parameter.dim() >= 2) parameter.normal_(0, 0.02);
    }
    parameters()[1].mul_(0.5).clamp_(-0.01, 0.01);
    parameters()[2].slice(0, 0, 2).fill_(3);
  }
};

/// What needs values at once: they are there, and what follows is deferred again.
class Demanding : public Module {
 public:
  Demanding() {
    auto first = register_module("first", torch::nn::Linear(8, 8));
    const at::NoGradGuard no_grad;
    torch::nn::init::orthogonal_(first->weight);
    register_module("second", torch::nn::Linear(8, 3));
    register_buffer("order", torch::randperm(10));
    register_module("third", torch::nn::Linear(3, 3));
    register_buffer("copy", first->weight.clone());
  }
};

std::vector<at::Tensor> states_of(const Module& module) {
  std::vector<at::Tensor> states = module.parameters();
  for (auto& buffer : module.buffers()) states.push_back(buffer);
  return states;
}

struct Built {
  std::shared_ptr<Module> module;
  std::shared_ptr<DeferredInit> deferred;
};

template <class Net>
Built build_deferred() {
  Built built;
  seed_everything(7);
  built.deferred = DeferredInit::record([&] { built.module = std::make_shared<Net>(); });
  return built;
}

template <class Net>
void expect_as_eager() {
  seed_everything(7);
  const auto eager = std::make_shared<Net>();
  const at::Tensor next = at::rand({4});
  const Built built = build_deferred<Net>();
  built.deferred->fill();
  const auto expected = states_of(*eager);
  const auto states = states_of(*built.module);
  ASSERT_EQ(states.size(), expected.size());
  for (size_t i = 0; i < states.size(); ++i) {
    EXPECT_TRUE(states[i].equal(expected[i])) << "state " << i;
  }
  EXPECT_TRUE(at::rand({4}).equal(next)) << "random numbers go on where they would have";
}

TEST(DeferredInit, GivesBitwiseWhatWouldHaveBeenThere) { expect_as_eager<Usual>(); }

TEST(DeferredInit, GivesValuesAtOnceToWhatNeedsThem) { expect_as_eager<Demanding>(); }

TEST(DeferredInit, TakesNoMemoryForParametersUntilThen) {
  const Built built = build_deferred<Usual>();
  for (const auto& parameter : built.module->parameters()) {
    EXPECT_TRUE(built.deferred->is_pending(parameter));
    EXPECT_EQ(parameter.storage().data(), nullptr);
  }
  EXPECT_FALSE(built.deferred->is_pending(built.module->named_buffers()["places"]));
}

TEST(DeferredInit, FillsOneStorageAfterTheOtherAndMayLetItGoAgain) {
  const Built built = build_deferred<Usual>();
  seed_everything(7);
  const auto eager = std::make_shared<Usual>();
  const auto names = built.module->named_parameters();
  // These two are changed once more when all have been drawn, and wait for that.
  const std::set<std::string> wait{"drawn", "embedding.weight"};
  std::set<const c10::StorageImpl*> seen;
  built.deferred->fill([&](const c10::StorageImpl* storage, const at::Tensor& values) {
    EXPECT_TRUE(seen.insert(storage).second) << "each comes once";
    for (const auto& item : names) {
      const auto* const own = item.value().storage().unsafeGetStorageImpl();
      if (own == storage) {
        EXPECT_TRUE(values.equal(eager->named_parameters()[item.key()].view(-1))) << item.key();
      } else if (!wait.contains(item.key())) {
        EXPECT_EQ(own->data(), nullptr) << "only one has memory at a time: " << item.key();
      }
    }
    return false;
  });
  for (const auto& item : names) {
    EXPECT_EQ(item.value().storage().data(), nullptr);
    EXPECT_FALSE(built.deferred->is_pending(item.value()));
  }
}

TEST(DeferredInit, GivesMemoryInTheOrderOfFillToValuesFromElsewhere) {
  const auto order_of = [](const Built& built, auto fill) {
    std::vector<int64_t> elements;
    (built.deferred.get()->*fill)([&](const c10::StorageImpl*, const at::Tensor& values) {
      EXPECT_NE(values.storage().data(), nullptr);
      elements.push_back(values.numel());
      return true;
    });
    return elements;
  };
  using Fill = void (DeferredInit::*)(const DeferredInit::Filled&);
  const auto drawn = order_of(build_deferred<Usual>(), static_cast<Fill>(&DeferredInit::fill));
  const Built built = build_deferred<Usual>();
  const auto before = rng_states();
  EXPECT_EQ(order_of(built, &DeferredInit::fill_from_elsewhere), drawn);
  EXPECT_TRUE(rng_states().begin()->second.equal(before.begin()->second)) << "nothing is drawn";
  for (const auto& parameter : built.module->parameters()) {
    EXPECT_FALSE(built.deferred->is_pending(parameter));
  }
}

TEST(DeferredInit, LeavesRandomNumbersAloneThatWereSeededSince) {
  const Built built = build_deferred<Usual>();
  seed_everything(99);
  built.deferred->fill();
  const at::Tensor after = at::rand({3});
  seed_everything(99);
  EXPECT_TRUE(after.equal(at::rand({3})));
}

TEST(DeferredInit, EndsWithItsScopeAlsoByAnException) {
  EXPECT_THROW(DeferredInit::record([] { throw std::runtime_error("in a constructor"); }),
               std::runtime_error);
  EXPECT_NE(at::rand({3}).storage().data(), nullptr);
}

TEST(DeferredInit, ReadingWhatIsNotThereYetThrows) {
  const Built built = build_deferred<Usual>();
  EXPECT_THROW(built.module->parameters()[1].data_ptr<float>(), c10::Error);
}

}  // namespace
}  // namespace phalanx
