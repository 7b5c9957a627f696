// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/compute/gemm.h"
#include "trainer/config/tree/forward.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/precision/numerics.h"
#include "trainer/ranks/ranks.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

class ModelBase;

/// Whether a rank holds a parameter's values, its gradient and the optimizer's state for it.
struct HeldParts {
  bool values = true;
  bool gradient = true;
  bool state = true;
};

/// How a run's matrix products are computed.
struct Products {
  compute::Gemm gemm = compute::Gemm::library_default;
  /// Writes into a config, before it is resolved, what was taken and why; empty: nowhere.
  std::function<void(config::Node& tree, compute::Gemm taken, const std::string& why)> record;
};

/// What a config asks for, as far as it is known before anything is built or launched. Each mixin
/// fills in its share from its own section (the hook FillPlan, in the order of the composition), so
/// that nothing else reads that section.
struct RunPlan {
  /// How ranks meet, and what they compute on. Without a mixin that sets it: the defaults.
  JoinOptions join;
  /// Devices of replicas in one process, as the config numbers them; empty: none.
  std::vector<int64_t> replicas;
  /// Whether activations are computed again in the backward pass.
  bool recomputes_activations = false;
  /// Cores that ranks are bound to.
  NumaBinding numa_binding = NumaBinding::automatic;
  /// The type that autocast computes in; nullopt: it is not used.
  std::optional<at::ScalarType> autocast;
  /// How exact products are, and whether results repeat bit for bit.
  Numerics numerics;
  /// What computes matrix products on the CPU. Without a mixin that sets it: LibTorch's default.
  Products products;
  /// Over how many ranks the model's parameters are divided.
  std::function<int64_t(const Ranks& ranks)> shards = [](const Ranks&) { return int64_t{1}; };
  /// What rank `rank` of `ranks`, two or more, holds of parameters, by their names; of one without
  /// an entry all. Empty: ranks hold alike.
  std::function<std::map<std::string, HeldParts>(ModelBase& model, int64_t rank, int64_t ranks)>
      held_parts;
  /// Whether the trainer can shard a model that does not fit into memory (FSDP).
  bool has_fsdp = true;
  /// Whether all ranks train with the same samples, as each holds a part of one model.
  bool shares_samples = false;
  /// Ranks that get no samples: the last ones, which hold parts of the model and serve the others.
  int64_t idle_ranks = 0;
  /// Among how many of so many ranks samples are dealt.
  int64_t data_ranks(int64_t ranks) const {
    if (shares_samples) return 1;
    return ranks > idle_ranks ? ranks - idle_ranks : ranks;
  }
  /// Whether these parts, their gradients and the optimizer's state are kept in host memory while
  /// the ranks compute on GPUs.
  std::function<bool(const Ranks& ranks)> is_offloaded = [](const Ranks&) { return false; };
  /// Copies of the trained parameters, divided as these are, that are kept beside them.
  int64_t weight_copies = 0;
  /// Where a run without checkpoints takes its first weights from.
  std::optional<std::filesystem::path> load_from;
  /// Refuses, before ranks are started, a place of first weights that is not there or does not fit
  /// the resolved config. Throws UserError.
  std::function<void(const config::Node& resolved)> check_first_weights;
  /// Refuses, before ranks of a training are started, data of a validation that is not there.
  /// Throws UserError.
  std::function<void()> check_validation_sets = [] {};
  /// Refuses, before ranks are started, a model that so many of them cannot train together; its
  /// values are not drawn yet. Throws UserError. Empty: any model will do.
  std::function<void(ModelBase& model, int64_t ranks)> check_model;
  /// Adds what is trained beside the model's own weights, which stay as they were loaded: once the
  /// model is made, before it has values. Throws UserError. Without it the model itself is trained.
  std::function<void(ModelBase& model)> adapt_model;

  /// Refuses, before anything is written, what does not fit the ranks or another mixin's share.
  /// Throws UserError with what would fit.
  using Check = std::function<void(const RunPlan& plan, const Ranks& ranks)>;
  std::vector<Check> checks;
};

}  // namespace phalanx
