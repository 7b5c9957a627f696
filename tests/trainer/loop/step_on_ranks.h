// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/loop/tiny.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/parallel_mixin.h"

/// Two steps of the tiny task on two ranks.
namespace phalanx::tiny {

/// The data of this rank, which has other samples than the other one.
inline TaskOptions samples_of(const World& world) {
  return {.data = {.samples = 10 - world.ranks().rank(), .promised_samples = 10}};
}

/// What a Trainer<ParallelMixin, Spy> is made of; begins the spy anew.
inline TrainerSetup setup_on(const World& world, const ParallelConfig& parallel,
                             const Parts& parts) {
  spy = {};
  TrainerSetup setup =
      make_setup(parts, {.max_steps = 2, .batch_size = 2, .gradient_accumulation_steps = 2},
                 {.name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true},
                 {{"parallel", {}, config::write(parallel)}, {"spy", {}, config::Node::map()}});
  setup.ranks = world.ranks();
  setup.device = world.device();
  return setup;
}

/// What ends both ranks' runs: "rank 0 says; rank 1 says".
inline std::string errors_of_both(const std::function<void(World&)>& train) {
  const auto body = [&](World& world) {
    std::string message = "none";
    try {
      train(world);
    } catch (const std::logic_error& error) {
      message = error.what();
    }
    const auto messages = world.ranks().all_gather(message);
    throw std::runtime_error(messages[0] + "; " + messages[1]);
  };
  return in_ranks(2, body).message;
}

}  // namespace phalanx::tiny
