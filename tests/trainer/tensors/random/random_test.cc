// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/random.h"

#include <gtest/gtest.h>

#include "tests/tensors.h"

namespace phalanx {
namespace {

TEST(Random, ASeedGivesWhatItGivesInPython) {
  seed_everything(0);
  // torch.manual_seed(0); torch.rand(2)
  const at::Tensor drawn = tensors::rand({2});
  EXPECT_FLOAT_EQ(drawn[0].item<float>(), 0.49625658988952637F);
  EXPECT_FLOAT_EQ(drawn[1].item<float>(), 0.7682217955589294F);
}

TEST(Random, AStateThatIsPutBackGivesTheSameNumbersAgain) {
  seed_everything(7);
  tensors::randn({3});  // Leaves a second normal number in the generator's cache.
  const RngStates states = rng_states();
  ASSERT_EQ(states.size(), 1);
  EXPECT_EQ(states.at("cpu").scalar_type(), at::kByte);
  EXPECT_EQ(states.at("cpu").dim(), 1);
  const at::Tensor first = tensors::randn({5});
  set_rng_states(states);
  EXPECT_TRUE(tensors::randn({5}).equal(first));
}

TEST(Random, AStateIsACopy) {
  seed_everything(7);
  const at::Tensor state = rng_states().at("cpu");
  const at::Tensor before = state.clone();
  tensors::rand({1000});
  EXPECT_TRUE(state.equal(before));
}

TEST(Random, WhatIsNoStateIsRefused) {
  EXPECT_THROW(set_rng_states({{"cpu", tensors::zeros({10}, at::kByte)}}), std::runtime_error);
  EXPECT_THROW(set_rng_states({{"cpu", tensors::zeros({10})}}), std::runtime_error);
}

TEST(Random, AGeneratorWithoutAStateStaysAsItIs) {
  seed_everything(7);
  const at::Tensor expected = tensors::rand({4});
  seed_everything(7);
  set_rng_states({{"cuda", tensors::zeros({16}, at::kByte)}});
  EXPECT_TRUE(tensors::rand({4}).equal(expected));
}

TEST(RngGuard, HidesWhatIsDrawnWithinIt) {
  seed_everything(7);
  const at::Tensor expected = tensors::rand({4});
  seed_everything(7);
  {
    const RngGuard guard;
    seed_everything(99);
    tensors::randn({17});
  }
  EXPECT_TRUE(tensors::rand({4}).equal(expected));
}

}  // namespace
}  // namespace phalanx
