// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/ways.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/parallel/activations/activation_checkpointing.h"
#include "trainer/tensors/random.h"

namespace phalanx {

/// A model that ranks train in some way, and the same model on one rank alone, both in float64.
template <class Model>
class BesideOneRank {
 public:
  BesideOneRank(const Way& way, const Ranks& ranks) : ranks_(ranks.world_size()) {
    plain.to(at::kDouble);
    model.to(at::kDouble);
    engine = way.wrap(model, ranks);
    if (way.recomputes) checkpoint_activations(model, {.policy = CheckpointedUnits::unit});
    for (const auto& parameter : parameters_of(model)) locals.push_back(engine->local(parameter));
    expected = parameters_of(plain);
  }

  /// The mean of the ranks' gradients, of their sums on one rank.
  void divide_expected_gradients() const {
    for (const NamedParameter& parameter : expected) {
      at::Tensor& gradient = parameter.tensor.mutable_grad();
      if (gradient.defined()) gradient = gradient.div(static_cast<double>(ranks_));
    }
  }

  /// Throws where a gradient of this rank is not that of one rank, or only one of them is there.
  void require_gradients(double tolerance, const std::string& what) const {
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string of = what + ": the gradient of " + locals[i].name;
      const at::Tensor& gradient = expected[i].tensor.grad();
      require(locals[i].tensor.grad().defined() == gradient.defined(), of + " is there");
      if (!gradient.defined()) continue;
      require_close(locals[i].tensor.grad(), part_of(gradient, *locals[i].shard), tolerance, of);
    }
  }

  /// Moves both against their gradients.
  void descend() {
    fsdp::testing::descend(locals);
    fsdp::testing::descend(expected);
  }

  Model plain = seeded();
  Model model = seeded();
  std::unique_ptr<ParallelEngine> engine;
  std::vector<NamedParameter> locals;    ///< This rank's parts of the model's parameters.
  std::vector<NamedParameter> expected;  ///< Those of `plain`, in the same order.

 private:
  static Model seeded() {
    seed_everything(3);
    return Model();
  }

  int64_t ranks_;
};

}  // namespace phalanx
