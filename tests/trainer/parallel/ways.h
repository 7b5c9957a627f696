// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Formatting.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/pass_cases.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/fsdp/fsdp.h"

/// Engines whose passes are compared with those of one rank.
namespace phalanx {

/// One way to train.
struct Way {
  std::string name;
  std::function<std::unique_ptr<ParallelEngine>(fsdp::testing::AnyModel& model, const Ranks& ranks)>
      wrap;
  int64_t ranks = 2;
  bool recomputes = false;   ///< Activations, in the backward pass.
  double tolerance = 1e-12;  ///< Of gradients and weights.
};

inline Way ddp(const std::string& name, const DdpOptions& options) {
  return {.name = "DDP" + name,
          .wrap = [options](fsdp::testing::AnyModel& model, const Ranks& ranks) {
            return prepare_ddp(model, ranks, options);
          }};
}

inline Way fsdp_of(const std::string& name, ShardingStrategy strategy,
                   const FsdpOptions& options = {}, bool cpu_offload = false) {
  return {.name = std::string(to_string(strategy)) + name,
          .wrap = [=](fsdp::testing::AnyModel& model, const Ranks& ranks) {
            return prepare_fsdp(model, ranks, strategy, options, /*sync_module_states=*/true,
                                {.cpu_offload = cpu_offload});
          }};
}

/// Those of a model, each once.
inline std::vector<NamedParameter> parameters_of(const fsdp::testing::AnyModel& model) {
  std::vector<NamedParameter> parameters;
  std::set<const at::TensorImpl*> seen;
  for (const auto& item : model.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) {
      parameters.push_back({item.key(), item.value()});
    }
  }
  return parameters;
}

/// Runs passes by the engine.
inline PassRunner runner_of(ParallelEngine& engine) {
  return {.forward =
              [&engine](const std::function<at::Tensor()>& pass, bool synchronize) {
                return engine
                    .run_tensors([&] { return std::vector<at::Tensor>{pass()}; }, synchronize)
                    .front();
              },
          .use = [&engine](const std::function<void()>& action) { engine.use(action); }};
}

/// What a rank holds of a parameter or of its gradient.
inline at::Tensor part_of(const at::Tensor& whole, const ShardRange& shard) {
  return whole.detach().reshape({-1}).slice(0, shard.begin, shard.end);
}

/// Throws where values differ by more than `tolerance`.
inline void require_close(const at::Tensor& found, const at::Tensor& expected, double tolerance,
                          const std::string& what) {
  if (expected.numel() == 0) return;
  const double most = found.detach().reshape({-1}).sub(expected).abs().max().item().toDouble();
  require(most <= tolerance, fmt::format("{}: {} from one rank's", what, most));
}

}  // namespace phalanx
