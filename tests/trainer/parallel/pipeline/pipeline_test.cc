// SPDX-License-Identifier: Apache-2.0
// Training by stages, beside one process that computes the same.

#include "trainer/parallel/pipeline/pipeline.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/gpt2/gpt2.h"
#include "models/interfaces/token_loss.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/parameters.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

constexpr int64_t kMicroBatches = 8;
constexpr int64_t kSteps = 5;
constexpr double kLr = 0.05;
constexpr int64_t kVocabulary = 11;
constexpr double kClose = 1e-12;  // of double precision: sums of gradients in another order

gpt2::Config tiny() {
  return {.vocab_size = kVocabulary,
          .n_positions = 8,
          .n_embd = 16,
          .n_layer = 4,
          .n_head = 2,
          .n_inner = std::nullopt,
          .embd_pdrop = 0,
          .attn_pdrop = 0,
          .resid_pdrop = 0};
}

// On each rank with other values, until they are made alike.
std::unique_ptr<Gpt2> model_of(uint64_t seed) {
  seed_everything(seed);
  auto model = std::make_unique<Gpt2>(tiny());
  model->to(at::kDouble);
  return model;
}

Loss loss_of(Gpt2& model, int64_t step, int64_t micro_batch) {
  const at::Tensor tokens =
      (at::arange(12, at::kLong).view({2, 6}) * 7 + 3 * step + 5 * micro_batch) % kVocabulary;
  const at::Tensor logits = model.logits(tokens.narrow(1, 0, 5));
  return Loss::Parts{{"cross_entropy", token_loss(logits, tokens.narrow(1, 1, 5), 10)},
                     {"size", logits.square().mean() * 0.01}};
}

void descend(const std::vector<NamedParameter>& parameters) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& each : parameters) {
    if (each.tensor.grad().defined()) at::Tensor(each.tensor).sub_(each.tensor.grad() * kLr);
    each.tensor.mutable_grad().reset();
  }
}

struct Trained {
  std::vector<double> losses;  // of each micro-batch
  std::vector<double> norms;   // of each step
  std::vector<at::Tensor> weights;
};

std::vector<at::Tensor> copies(Gpt2& model) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& each : model.parameters()) values.push_back(each.detach().clone());
  return values;
}

Trained trained_alone() {
  const auto model = model_of(0);
  Trained trained;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      const at::Tensor loss = loss_of(*model, step, i).total();
      trained.losses.push_back(loss.item<double>());
      (loss / kMicroBatches).backward();
    }
    const auto parameters = named_parameters(*model);
    trained.norms.push_back(measure_gradients(parameters).total.item<double>());
    descend(parameters);
  }
  trained.weights = copies(*model);
  return trained;
}

Trained trained_by(Gpt2& model, Pipeline& engine) {
  Trained trained;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      const at::Tensor loss =
          engine.run([&] { return loss_of(model, step, i); }, i + 1 == kMicroBatches).total();
      trained.losses.push_back(loss.item<double>());
      (loss / kMicroBatches).backward();
    }
    const auto parameters = local_parameters(model, &engine);
    trained.norms.push_back(engine.measure_gradients(parameters).total.item<double>());
    descend(parameters);
  }
  engine.summon_full_params([&] { trained.weights = copies(model); });
  return trained;
}

void require_close(const std::vector<double>& here, const std::vector<double>& expected,
                   const std::string& what) {
  require(here.size() == expected.size(), "the number of " + what);
  for (size_t i = 0; i < here.size(); ++i) {
    require(std::abs(here[i] - expected[i]) <= kClose * std::abs(expected[i]),
            what + " " + std::to_string(i) + ": " + std::to_string(here[i]) + ", expected " +
                std::to_string(expected[i]));
  }
}

class Stages : public ::testing::TestWithParam<int64_t> {};

TEST_P(Stages, TrainAsOneProcess) {
  const int64_t count = GetParam();
  const auto outcome = in_ranks(count, [&](World& world) {
    const int64_t stage = world.ranks().rank();
    const auto model = model_of(static_cast<uint64_t>(stage));
    Pipeline engine(*model, world.ranks());
    const Trained here = trained_by(*model, engine);
    const Trained alone = trained_alone();
    if (stage + 1 == count) {
      require_close(here.losses, alone.losses, "loss");
    } else {
      require(std::ranges::all_of(here.losses, [](double loss) { return loss == 0; }),
              "losses are those of the last stage");
    }
    require_close(here.norms, alone.norms, "norm");
    for (size_t i = 0; i < alone.weights.size(); ++i) {
      require(here.weights[i].allclose(alone.weights[i], kClose, kClose),
              "the values of parameter " + std::to_string(i));
    }
    require(!here.weights[0].allclose(copies(*model_of(0))[0]), "they have moved");
    require(engine.most_in_flight() == count - stage, "activations of so many micro-batches");
    require(engine.backward_passes() == kSteps * kMicroBatches, "all backward passes count");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(TwoToFour, Stages, ::testing::Values(2, 3, 4));

TEST(Pipeline, MeasuresTheLossOnAllStages) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto model = model_of(0);
    const double expected = loss_of(*model, 0, 0).total().item<double>();
    Pipeline engine(*model, world.ranks());
    const at::NoGradGuard no_grad;
    const Loss loss = engine.run([&] { return loss_of(*model, 0, 0); }, true);
    require(loss.parts().size() == 2 && loss.parts()[1].first == "size", "its parts");
    require(std::abs(loss.total().item<double>() - expected) < kClose, "its value");
    double whole = 0;
    engine.use([&] { whole = loss_of(*model, 0, 0).total().item<double>(); });
    require(std::abs(whole - expected) < kClose, "the same of the whole model");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Pipeline, AddsUpSeveralPassesThatSynchronize) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto model = model_of(0);
    const auto alone = model_of(0);
    Pipeline engine(*model, world.ranks());
    for (int64_t i = 0; i < 2; ++i) {
      engine.run([&] { return loss_of(*model, 0, i); }, true).total().backward();
      loss_of(*alone, 0, i).total().backward();
    }
    const auto held = local_parameters(*model, &engine);
    const auto expected = named_parameters(*alone);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i].tensor.numel() == 0) continue;
      require(held[i].tensor.grad().allclose(expected[i].tensor.grad(), kClose, kClose),
              "the gradient of " + held[i].name);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

class LossesOf : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(LossesOf, AModelAreSumsOverRanks) {
  const at::ScalarType dtype = GetParam();
  const auto outcome = in_ranks(2, [dtype](World& world) {
    const auto model = model_of(0);
    model->to(dtype);
    const double expected = loss_of(*model, 0, 0).total().item<double>();
    const double close = dtype == at::kDouble ? kClose : 1e-6;
    Pipeline engine(*model, world.ranks());
    const Loss trained = engine.run([&] { return loss_of(*model, 0, 0); }, true);
    const at::Tensor sum = trained.total().detach().clone();
    require(sum.scalar_type() == dtype, "the dtype of a loss in training");
    world.ranks().all_reduce(sum);
    require(std::abs(sum.item<double>() - expected) < close, "the sum in training");
    trained.total().backward();
    const at::NoGradGuard no_grad;
    const at::Tensor measured = engine.run([&] { return loss_of(*model, 0, 0); }, true).total();
    require(measured.scalar_type() == dtype, "the dtype of a loss in validation");
    const at::Tensor of_both = measured.clone();
    world.ranks().all_reduce(of_both);
    require(std::abs(of_both.item<double>() - 2 * expected) < 2 * close, "the same on both");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, LossesOf, ::testing::Values(at::kFloat, at::kDouble));

/// Whether each pass synchronizes, or the last one alone.
class LeftOut : public ::testing::TestWithParam<bool> {};

TEST_P(LeftOut, PassesAddNothing) {
  const bool each = GetParam();
  const auto outcome = in_ranks(3, [each](World& world) {
    const auto model = model_of(0);
    const auto alone = model_of(0);
    Pipeline engine(*model, world.ranks());
    for (int64_t i = 0; i < 5; ++i) {
      const at::Tensor loss =
          engine.run([&] { return loss_of(*model, 0, i); }, each || i == 4).total();
      if (i % 2 == 1) continue;  // on all stages
      loss.backward();
      loss_of(*alone, 0, i).total().backward();
    }
    require(engine.backward_passes() == 3, "backward passes that were called");
    const auto held = local_parameters(*model, &engine);
    const auto expected = named_parameters(*alone);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i].tensor.numel() == 0) continue;
      require(held[i].tensor.grad().allclose(expected[i].tensor.grad(), kClose, kClose),
              "the gradient of " + held[i].name);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(Synchronizing, LeftOut, ::testing::Bool());

/// The stage that leaves out a pass by itself.
class LeftOutBy : public ::testing::TestWithParam<int64_t> {};

TEST_P(LeftOutBy, OneStageIsRefused) {
  const int64_t stage = GetParam();
  const auto outcome = in_ranks(2, [stage](World& world) {
    const auto model = model_of(0);
    Pipeline engine(*model, world.ranks());
    try {
      for (int64_t i = 0; i < 2; ++i) {
        const at::Tensor loss = engine.run([&] { return loss_of(*model, 0, i); }, i == 1).total();
        if (i == 0 && world.ranks().rank() == stage) continue;
        loss.backward();
      }
    } catch (const CommunicationError&) {
      require(world.ranks().rank() == 1, "the other one tells why");
      return;
    } catch (const std::exception& error) {
      const std::string told = error.what();
      require(told.find(stage == 0 ? "pass 1 has its backward pass on the last stage, and not on "
                                     "stage 0"
                                   : "pass 1 has its backward pass on stage 0, and not on the last "
                                     "stage") != std::string::npos,
              told);
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

INSTANTIATE_TEST_SUITE_P(OfTwo, LeftOutBy, ::testing::Values(0, 1));

// A loss that is let go of after the next forward pass.
TEST(Pipeline, LeavesOutAPassUntilTheNextBackwardPass) {
  const auto outcome = in_ranks(3, [](World& world) {
    const auto model = model_of(0);
    const auto alone = model_of(0);
    Pipeline engine(*model, world.ranks());
    at::Tensor first = engine.run([&] { return loss_of(*model, 0, 0); }, false).total();
    const at::Tensor second = engine.run([&] { return loss_of(*model, 0, 1); }, true).total();
    first.reset();
    second.backward();
    loss_of(*alone, 0, 1).total().backward();
    const auto held = local_parameters(*model, &engine);
    const auto expected = named_parameters(*alone);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i].tensor.numel() == 0) continue;
      require(held[i].tensor.grad().allclose(expected[i].tensor.grad(), kClose, kClose),
              "the gradient of " + held[i].name);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

/// A backward pass that a pipeline refuses, and a part of the error that each stage throws.
struct Refused {
  const char* name;
  void (*passes)(const std::function<at::Tensor(int64_t, bool synchronize)>& loss);
  const char* error;
};

class BackwardPasses : public ::testing::TestWithParam<Refused> {};

TEST_P(BackwardPasses, AreRefusedOnAllStages) {
  const Refused& refused = GetParam();
  const auto outcome = in_ranks(2, [&](World& world) {
    const auto model = model_of(0);
    Pipeline engine(*model, world.ranks());
    std::string told;
    try {
      refused.passes([&](int64_t micro_batch, bool synchronize) {
        return engine.run([&] { return loss_of(*model, 0, micro_batch); }, synchronize).total();
      });
    } catch (const std::exception& error) {
      told = error.what();
    }
    world.ranks().barrier();
    require(told.find(refused.error) != std::string::npos, told);
  });
  EXPECT_EQ(outcome.message, "");
}

constexpr const char* kBeforeTheLast =
    "pass 1 has had no backward pass before that of pass 2, which synchronizes";

INSTANTIATE_TEST_SUITE_P(OfOtherForms, BackwardPasses,
                         ::testing::Values(Refused{"TwiceOfOneGraph",
                                                   [](const auto& loss) {
                                                     const at::Tensor once = loss(0, true);
                                                     once.backward({}, /*retain_graph=*/true);
                                                     once.backward();
                                                   },
                                                   "pass 1 has had its backward pass"},
                                           Refused{"OfASum",
                                                   [](const auto& loss) {
                                                     const at::Tensor first = loss(0, false);
                                                     (first + loss(1, true)).backward();
                                                   },
                                                   kBeforeTheLast},
                                           Refused{"OfALossThatIsKept",
                                                   [](const auto& loss) {
                                                     const at::Tensor first = loss(0, false);
                                                     loss(1, true).backward();
                                                     first.backward();
                                                   },
                                                   kBeforeTheLast},
                                           Refused{"WithoutTheLast",
                                                   [](const auto& loss) {
                                                     loss(0, false).backward();
                                                     loss(1, true);
                                                     loss(2, false);
                                                   },
                                                   "without the backward pass of the one that"}),
                         [](const auto& tested) { return tested.param.name; });

TEST(Pipeline, MeasuresNoGradientsOfHalfAStep) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto model = model_of(0);
    Pipeline engine(*model, world.ranks());
    engine.run([&] { return loss_of(*model, 0, 0); }, false).total().backward();
    std::string told;
    try {
      engine.measure_gradients(local_parameters(*model, &engine));
    } catch (const std::logic_error& error) {
      told = error.what();
    }
    world.ranks().barrier();
    require(told.find("gradients of some passes") != std::string::npos, told);
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Pipeline, LetsOnePartOfALossBeDifferentiatedAlone) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto model = model_of(0);
    const auto alone = model_of(0);
    Pipeline engine(*model, world.ranks());
    engine.run([&] { return loss_of(*model, 0, 0); }, true).parts()[1].second.backward();
    loss_of(*alone, 0, 0).parts()[1].second.backward();
    const auto held = local_parameters(*model, &engine);
    const auto expected = named_parameters(*alone);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i].tensor.numel() == 0) continue;
      require(held[i].tensor.grad().allclose(expected[i].tensor.grad(), kClose, kClose),
              "the gradient of " + held[i].name);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Pipeline, RefusesALossWhosePartsChange) {
  const auto outcome = in_ranks(2, [](World& world) {
    const auto model = model_of(0);
    Pipeline engine(*model, world.ranks());
    engine.run([&] { return loss_of(*model, 0, 0); }, true);
    const auto other = [&] { return Loss(loss_of(*model, 0, 0).total()); };
    std::string told;
    try {
      engine.run(other, true);
    } catch (const std::logic_error& error) {
      told = error.what();
    }
    world.ranks().barrier();  // what is on its way to the last stage comes there
    const bool is_refused = told.find("the same parts and dtypes") != std::string::npos;
    require(is_refused != world.ranks().is_first(), told);
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Pipeline, HoldsWhatLiesOutsideTheUnitsOnItsFirstAndLastStage) {
  const auto outcome = in_ranks(3, [](World& world) {
    const int64_t stage = world.ranks().rank();
    const auto model = model_of(0);
    Pipeline engine(*model, world.ranks());
    for (const NamedParameter& each : local_parameters(*model, &engine)) {
      const bool is_outside = !each.name.starts_with("h.");
      // Of four units: 0 | 1 | 2, 3.
      const int64_t unit = is_outside ? -1 : each.name[2] - '0';
      const bool is_here = is_outside ? stage != 1 : std::min<int64_t>(unit, 2) == stage;
      require((each.tensor.numel() > 0) == is_here, each.name);
    }
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
