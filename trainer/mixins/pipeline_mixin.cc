// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/pipeline_mixin.h"

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

#include "trainer/api/model_base.h"
#include "trainer/api/without_stages.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/keys_of_trainers.h"
#include "trainer/mixins/rank_comparison.h"
#include "trainer/parallel/pipeline/pipeline.h"
#include "trainer/parallel/pipeline/stages.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

constexpr std::chrono::milliseconds kNoTime{0};

void require_stages(ModelBase& model, int64_t ranks) {
  if (const auto* const without = model.as<WithoutStages>()) {
    throw UserError(fmt::format(
        "the trainer pipeline makes each rank a stage, and {}: choose name: supervised, which "
        "spreads the model with strategy: fsdp, or a model whose blocks follow each other, such as "
        "gpt2 or llama",
        without->why_no_stages()));
  }
  try {
    pipeline::divide(model.module(), ranks);
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format(
        "the trainer pipeline makes each rank a stage, and cannot divide this model: {}. Start "
        "fewer ranks (launcher.processes), or choose name: supervised",
        error.what()));
  }
}

}  // namespace

void PipelineConfig::describe(config::Schema<PipelineConfig>& s) {
  s.field("numa_binding", &PipelineConfig::numa_binding,
          "cores that a rank is bound to; as for the trainer supervised")
      .choices(kNumaBindings)
      .resume_may_change();
  s.field("join_timeout", &PipelineConfig::join_timeout,
          "how long to wait at the start for all ranks to come")
      .greater_than(kNoTime)
      .resume_may_change();
  s.field("timeout", &PipelineConfig::timeout,
          "how long a stage waits for another one, or in a collective, before that counts as hung")
      .greater_than(kNoTime)
      .resume_may_change();
}

void PipelineMixinBase::complete_config(config::Node& tree) {
  refuse_keys_of_others(tree, Spreading::stages);
}

void PipelineMixinBase::fill_plan(const PipelineConfig& config, RunPlan& plan) {
  // Calls carry tensors in host memory.
  plan.join = {
      .device = DeviceChoice::cpu, .join_timeout = config.join_timeout, .timeout = config.timeout};
  plan.numa_binding = config.numa_binding;
  plan.shares_samples = true;
  plan.has_fsdp = false;
  plan.check_model = require_stages;
  plan.shards = [](const Ranks& ranks) { return ranks.world_size(); };  // at the least
}

void PipelineMixinBase::set_up(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  if (ranks.is_single_rank()) return;
  compare_ranks(trainer);
  require_stages(trainer.model(), ranks.world_size());
  ranks.set_activity("starting the stages");
  trainer.initialize_model();
  engine_ = std::make_shared<Pipeline>(trainer.model().module(), ranks);
  trainer.wrap(trainer.task_model().wrapped_by(engine_));
}

void PipelineMixinBase::close() {
  if (engine_) engine_->close();
}

}  // namespace phalanx
