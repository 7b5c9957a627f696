// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/remote_embedding_mixin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/lookup_table.h"
#include "trainer/api/model_base.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/keys_of_trainers.h"
#include "trainer/mixins/rank_comparison.h"
#include "trainer/parallel/remote_embedding/remote_embedding.h"
#include "trainer/parallel/remote_embedding/tables.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

constexpr std::chrono::milliseconds kNoTime{0};

void check_ranks(const RemoteEmbeddingConfig& config, const Ranks& ranks) {
  if (ranks.is_single_rank() || config.servers < ranks.world_size()) return;
  throw UserError(fmt::format(
      "parallel.servers is {}, and there are {} ranks: servers do not train, give {} at most",
      config.servers, ranks.world_size(), ranks.world_size() - 1));
}

void check_tables(const RemoteEmbeddingConfig& config, ModelBase& model) {
  try {
    remote_embedding::chosen_tables(model.module(), config.tables, config.servers);
  } catch (const std::invalid_argument& error) {
    throw UserError(
        fmt::format("parallel.{}: {}", config.tables.empty() ? "servers" : "tables", error.what()));
  }
}

// Ranks that train hold all but tables that are looked up by rows. A server holds the values of all
// but other servers' tables, and gradients and state of its own tables alone.
std::map<std::string, HeldParts> held_parts(const RemoteEmbeddingConfig& config, ModelBase& model,
                                            int64_t rank, int64_t ranks) {
  check_tables(config, model);
  const std::vector<NamedTable> tables =
      remote_embedding::chosen_tables(model.module(), config.tables, config.servers);
  const std::vector<int64_t> dealt = remote_embedding::deal_tables(tables, config.servers);
  const int64_t trainers = ranks - config.servers;
  const bool serves = rank >= trainers;
  std::map<std::string, HeldParts> parts;
  for (const NamedParameter& parameter : named_parameters(model)) {
    const auto table = std::ranges::find_if(
        tables, [&](const NamedTable& each) { return each.weight.is_same(parameter.tensor); });
    HeldParts& its = parts[parameter.name];
    if (table == tables.end()) {
      its.gradient = its.state = !serves;
    } else if (serves) {
      const auto place = static_cast<std::size_t>(table - tables.begin());
      its.values = its.gradient = its.state = dealt[place] == rank - trainers;
    } else {
      its.values = its.gradient = table->table->use() == TableUse::whole;
      its.state = false;
    }
  }
  return parts;
}

}  // namespace

void RemoteEmbeddingConfig::describe(config::Schema<RemoteEmbeddingConfig>& s) {
  s.field("servers", &RemoteEmbeddingConfig::servers,
          "ranks that hold the tables, and their optimizer: the last ones, which do not train")
      .at_least(1)
      .resume_may_change();
  s.field("tables", &RemoteEmbeddingConfig::tables,
          "embeddings that lie there, by the names of their modules (wte); empty: all of the model")
      .resume_may_change();
  s.field("numa_binding", &RemoteEmbeddingConfig::numa_binding,
          "cores that a rank is bound to; as for the trainer supervised")
      .choices(kNumaBindings)
      .resume_may_change();
  s.field("join_timeout", &RemoteEmbeddingConfig::join_timeout,
          "how long to wait at the start for all ranks to come")
      .greater_than(kNoTime)
      .resume_may_change();
  s.field("timeout", &RemoteEmbeddingConfig::timeout,
          "how long a call of a server, or a collective, may take before a rank counts as hung")
      .greater_than(kNoTime)
      .resume_may_change();
}

RemoteEmbeddingMixinBase::RemoteEmbeddingMixinBase(RemoteEmbeddingConfig config)
    : config_(std::move(config)) {}

void RemoteEmbeddingMixinBase::complete_config(config::Node& tree) {
  refuse_keys_of_others(tree, Spreading::remote_embeddings);
}

void RemoteEmbeddingMixinBase::fill_plan(const RemoteEmbeddingConfig& config, RunPlan& plan) {
  // Calls carry tensors in host memory.
  plan.join = {
      .device = DeviceChoice::cpu, .join_timeout = config.join_timeout, .timeout = config.timeout};
  plan.numa_binding = config.numa_binding;
  plan.idle_ranks = config.servers;
  plan.has_fsdp = false;
  plan.held_parts = [config](ModelBase& model, int64_t rank, int64_t ranks) {
    return held_parts(config, model, rank, ranks);
  };
  plan.check_model = [config](ModelBase& model, int64_t /*ranks*/) { check_tables(config, model); };
  plan.checks.emplace_back(
      [config](const RunPlan& /*whole*/, const Ranks& ranks) { check_ranks(config, ranks); });
}

void RemoteEmbeddingMixinBase::set_up(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  if (ranks.is_single_rank()) return;
  compare_ranks(trainer);
  check_tables(config_, trainer.model());
  ranks.set_activity("starting the servers of embeddings");
  trainer.initialize_model();
  engine_ = std::make_shared<RemoteEmbedding>(
      trainer.model().module(), ranks,
      RemoteEmbeddingOptions{.servers = config_.servers, .tables = config_.tables, .ddp = {}});
  trainer.wrap(trainer.task_model().wrapped_by(engine_));
}

void RemoteEmbeddingMixinBase::close() {
  if (engine_) engine_->close();
}

}  // namespace phalanx
