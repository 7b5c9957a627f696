// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/own_step.h"
#include "trainer/api/optimizer_rules.h"
#include "trainer/step/optimizer_part.h"

/// A step of two optimizers that pull at one loss from two sides, as the two models of a GAN do.
namespace phalanx::tiny {

/// The tiny model's weight is the generator's, its bias the critic's, each with a schedule.
struct TwoOptimizers {
  std::shared_ptr<Descent> generator = std::make_shared<Descent>(0.1);
  std::shared_ptr<Descent> critic = std::make_shared<Descent>(0.05);

  static double generator_factor(int64_t /*step*/, int64_t /*total*/) { return 1; }
  static double critic_factor(int64_t step, int64_t /*total*/) {
    return 1 / static_cast<double>(step);
  }

  std::vector<OptimizerPart> make_parts() const {
    const auto part = [](std::string name, std::string parameter, auto optimizer, auto factor) {
      return OptimizerPart{
          .rules = {.name = std::move(name),
                    .parameters =
                        ParameterPatterns{.patterns = {std::move(parameter)}, .field = "the test"}},
          .optimizer = std::move(optimizer),
          .lr_scheduler = std::make_shared<Schedule>(factor)};
    };
    return {part("generator", "weight", generator, generator_factor),
            part("critic", "bias", critic, critic_factor)};
  }
};

/// Two updates of the critic, which makes the loss larger, and one of the generator.
inline void gan_step(OwnStep& task, TrainingStep& step, Regressor& model) {
  const auto move = [&](const std::string& name, double sign) {
    for (const auto& batch : step.micro_batches()) {
      const auto loss = [&] {
        const auto& samples = static_cast<const Samples&>(*batch);
        return std::vector{task.compute_loss(model, samples, step.state()).total()};
      };
      step.backward(step.run(loss).front(),
                    {.weight = sign * step.weight_of(*batch), .name = name, .into = {name}});
    }
    step.update(name);
  };
  move("critic", -1);
  move("critic", -1);
  move("generator", 1);
}

/// How `gan_by_hand` trains.
struct HandOptions {
  int64_t steps = 2;
  int64_t batch_size = 2;
  int64_t accumulation = 2;
  std::vector<int64_t> samples = {10};  ///< Of each rank's data.
};

/// The weights after such steps over the micro-batches of all ranks, in one plain loop.
std::vector<double> gan_by_hand(const HandOptions& options);

}  // namespace phalanx::tiny
