// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/parameter_server_mixin.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/keys_of_trainers.h"
#include "trainer/mixins/rank_comparison.h"
#include "trainer/parallel/parameter_server/parameter_server.h"
#include "trainer/parallel/parameter_server/sparse_tables.h"
#include "trainer/plan/run_plan.h"
#include "trainer/precision/numerics.h"

namespace phalanx {
namespace {

constexpr std::chrono::milliseconds kNoTime{0};

void check_ranks(const ParameterServerConfig& config, const Ranks& ranks) {
  if (ranks.is_single_rank() || config.servers <= ranks.world_size()) return;
  throw UserError(fmt::format(
      "parallel.servers is {}, and there are {} ranks: servers are some of them, give {} at most",
      config.servers, ranks.world_size(), ranks.world_size()));
}

// All ranks hold all values, and in a backward pass all gradients; a server moves what it serves.
std::map<std::string, HeldParts> held_parts(ModelBase& model, int64_t rank, int64_t servers) {
  std::vector<NamedParameter> trained = named_parameters(model);
  std::erase_if(trained, [](const NamedParameter& each) { return !each.tensor.requires_grad(); });
  const std::vector<int64_t> dealt = parameter_server::deal(trained, servers);
  std::map<std::string, HeldParts> parts;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    parts[trained[i].name] = {.state = dealt[i] == rank};
  }
  return parts;
}

void check_tables(ModelBase& model) {
  try {
    parameter_server::sparse_tables(model.module());
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("parallel.sparse_embeddings: {}; set it to false", error.what()));
  }
}

}  // namespace

void ParameterServerConfig::describe(config::Schema<ParameterServerConfig>& s) {
  s.field("servers", &ParameterServerConfig::servers,
          "ranks that serve the parameters, and keep the optimizer: the first ones, which train, "
          "too")
      .at_least(1)
      .resume_may_change();
  s.field("updates", &ParameterServerConfig::updates,
          "when a server moves the weights: with the gradients of all ranks (synchronous), or at "
          "its own steps with what has come by then (asynchronous)")
      .choices({{"synchronous", ServerUpdates::synchronous},
                {"asynchronous", ServerUpdates::asynchronous}});
  s.field("sparse_embeddings", &ParameterServerConfig::sparse_embeddings,
          "gradients of embeddings that are only looked up travel to their server as the rows that "
          "were, not whole");
  s.field("numa_binding", &ParameterServerConfig::numa_binding,
          "cores that a rank is bound to; as for the trainer supervised")
      .choices(kNumaBindings)
      .resume_may_change();
  s.field("join_timeout", &ParameterServerConfig::join_timeout,
          "how long to wait at the start for all ranks to come")
      .greater_than(kNoTime)
      .resume_may_change();
  s.field("timeout", &ParameterServerConfig::timeout,
          "how long a call of a server, or a collective, may take before a rank counts as hung")
      .greater_than(kNoTime)
      .resume_may_change();
}

void ParameterServerMixinBase::complete_config(config::Node& tree) {
  refuse_keys_of_others(tree, Spreading::parameter_servers);
}

void ParameterServerMixinBase::fill_plan(const ParameterServerConfig& config, RunPlan& plan) {
  // Calls carry tensors in host memory.
  plan.join = {
      .device = DeviceChoice::cpu, .join_timeout = config.join_timeout, .timeout = config.timeout};
  plan.numa_binding = config.numa_binding;
  plan.has_fsdp = false;
  plan.held_parts = [config](ModelBase& model, int64_t rank, int64_t /*ranks*/) {
    return held_parts(model, rank, config.servers);
  };
  if (config.sparse_embeddings) {
    plan.check_model = [](ModelBase& model, int64_t /*ranks*/) { check_tables(model); };
  }
  plan.checks.emplace_back(
      [config](const RunPlan& /*whole*/, const Ranks& ranks) { check_ranks(config, ranks); });
}

void ParameterServerMixinBase::set_up(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  if (ranks.is_single_rank()) return;
  compare_ranks(trainer);
  // LoRA may have frozen what the config's model trains.
  if (config_.sparse_embeddings) check_tables(trainer.model());
  ranks.set_activity("starting the parameter servers");
  trainer.initialize_model();
  engine_ = std::make_shared<ParameterServer>(
      trainer.model().module(), ranks,
      ParameterServerOptions{.servers = config_.servers,
                             .synchronous = config_.updates == ServerUpdates::synchronous,
                             .sparse_embeddings = config_.sparse_embeddings});
  trainer.wrap(trainer.task_model().wrapped_by(engine_));
}

void ParameterServerMixinBase::note_restored_weights() {
  if (engine_) engine_->weights_restored();
}

void ParameterServerMixinBase::close() {
  if (engine_) engine_->close();
}

}  // namespace phalanx
