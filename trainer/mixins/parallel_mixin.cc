// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/parallel_mixin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/ineffective.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/count_progress.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"
#include "trainer/mixins/group_states.h"
#include "trainer/mixins/keys_of_trainers.h"
#include "trainer/mixins/rank_comparison.h"
#include "trainer/parallel/data_parallel.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/replicas/replica_devices.h"
#include "trainer/parallel/strategy.h"
#include "trainer/plan/largest_tensor.h"
#include "trainer/plan/run_plan.h"
#include "trainer/ranks/collectives/hosts.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

fsdp::Mesh mesh_for(const ParallelConfig& config, const Ranks& ranks) {
  return mesh_of(config.sharding_strategy, config.fsdp, ranks.rank(), hosts_of(ranks));
}

// On standard error, as what speaks against the config itself: it is not the run's own output.
void warn_where_nothing_is_sharded(const ParallelConfig& config, const Ranks& ranks) {
  if (!config.use_fsdp || !ranks.is_first()) return;
  const std::string warning =
      unsharded_warning(config.sharding_strategy, config.fsdp, mesh_for(config, ranks));
  if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
}

// A world of one is not wrapped, in DDP or in FSDP: what the user set for either does nothing. Not
// so ddp.find_unused_parameters: passes may leave parameters out here as well.
void warn_of_options_of_several_ranks(const ParallelConfig& config, const config::Node& resolved) {
  std::vector<std::string> fields{"sync_module_states", "sync_batchnorm", "ddp"};
  constexpr std::string_view kAlwaysHolds = "parallel.ddp.find_unused_parameters";
  if (config.use_fsdp) {
    fields = {"use_fsdp",           "cpu_offload",    "sharding_strategy",
              "sync_module_states", "sync_batchnorm", "fsdp"};
  }
  auto values = config::set_values(config::declaration<ParallelConfig>(),
                                   *resolved.find("parallel"), "parallel", fields);
  std::erase_if(values, [](const config::SetValue& value) { return value.path == kAlwaysHolds; });
  if (values.empty()) return;
  std::vector<std::string> texts;
  for (const auto& [path, origin] : values) {
    texts.push_back(fmt::format("{} ({})", path, origin.text()));
  }
  fmt::print(stderr,
             "warning: there is one rank, whose model is not wrapped in DDP or FSDP; without "
             "effect: {}\n",
             fmt::join(texts, ", "));
}

// float16 gradients need a loss scale, which comes with autocast's float16, and must not be kept in
// it once that is taken away.
void require_loss_scale(const FsdpMixedPrecision& precision, const RunPlan& plan) {
  const bool has_scale = plan.autocast == at::kHalf;
  const bool asks_for_half = precision.param_dtype == LowPrecision::float16 ||
                             precision.reduce_dtype == LowPrecision::float16;
  if (asks_for_half && !has_scale) {
    throw UserError(
        "parallel.fsdp.mixed_precision asks for float16, whose gradients need a loss scale: set "
        "mixed_precision.enabled=true and mixed_precision.dtype=float16, or use bfloat16");
  }
  const auto reduces_in =
      precision.reduce_dtype.value_or(precision.param_dtype.value_or(LowPrecision::float16));
  const bool keeps_half = precision.keep_low_precision_grads && reduces_in == LowPrecision::float16;
  if (has_scale && keeps_half) {
    throw UserError(
        "parallel.fsdp.mixed_precision.keep_low_precision_grads would keep gradients in float16 "
        "without the loss scale that brings them into its range: leave it out, or use bfloat16");
  }
}

// The ranks are as many as the config wants, and sharding fits them and the precision.
void check_ranks(const ParallelConfig& config, const RunPlan& plan, const Ranks& ranks) {
  require_replicas(config.data_parallel.devices, ranks.world_size(), plan.recomputes_activations,
                   config.device);
  if (ranks.is_single_rank()) return;
  if (config.single_rank) {
    throw UserError(fmt::format(
        "parallel.single_rank is true (strategy: none), and there are {} ranks: choose strategy: "
        "ddp or strategy: fsdp, or start one rank with launcher.processes: 1",
        ranks.world_size()));
  }
  if (!config.use_fsdp) {
    if (!config.ddp.comm_hook) return;
    return Registry<CommHook>::instance().make(*config.ddp.comm_hook)->check(ranks.world_size());
  }
  after_forward(config.sharding_strategy, config.fsdp, mesh_for(config, ranks).shards);
  require_loss_scale(config.fsdp.mixed_precision, plan);
}

// The weights of a large model take their time to be drawn.
void show_wrapping(const Ranks& ranks, const std::function<void()>& wrap) {
  if (!ranks.is_first()) return wrap();
  Console errors(STDERR_FILENO);
  with_progress(errors, "drawing the model's weights", CountProgress(), wrap);
}

}  // namespace

ParallelMixinBase::ParallelMixinBase(ParallelConfig config) : config_(std::move(config)) {}
ParallelMixinBase::~ParallelMixinBase() = default;

void ParallelMixinBase::complete_config(config::Node& tree) {
  refuse_keys_of_others(tree, Spreading::data_parallel);
  resolve_strategy(tree);
}

void ParallelMixinBase::fill_plan(const ParallelConfig& config, RunPlan& plan) {
  plan.join = {
      .device = config.device, .join_timeout = config.join_timeout, .timeout = config.timeout};
  plan.numa_binding = config.numa_binding;
  plan.replicas = config.data_parallel.devices;
  plan.shards = [config](const Ranks& ranks) {
    return ranks.is_single_rank() || !config.use_fsdp ? 1 : mesh_for(config, ranks).shards;
  };
  plan.is_offloaded = [config](const Ranks& ranks) {
    return !ranks.is_single_rank() && config.use_fsdp && config.cpu_offload;
  };
  plan.checks.emplace_back(
      [config](const RunPlan& whole, const Ranks& ranks) { check_ranks(config, whole, ranks); });
}

void ParallelMixinBase::end_step() {
  if (hook_) hook_->after_update();
}

void ParallelMixinBase::advise(const TrainerBase& trainer, std::vector<std::string>& advice) const {
  if (!config_.use_fsdp) {
    advice.emplace_back(
        "parallel.use_fsdp: true with FULL_SHARD on several ranks (parameters, gradients, "
        "optimizer)");
    const config::Node* section = chosen_section<ModelBase>(trainer.resolved_config());
    if (section == nullptr) return;
    advice.push_back("a smaller model: " + largest_tensor(trainer.model(), *section));
    return;
  }
  if (config_.sharding_strategy != ShardingStrategy::full_shard) {
    advice.emplace_back("parallel.sharding_strategy: FULL_SHARD (parameters)");
  }
  if (config_.fsdp.accumulated_gradients == AccumulatedGradients::whole &&
      trainer.training().gradient_accumulation_steps != 1) {
    advice.emplace_back("parallel.fsdp.accumulated_gradients: sharded (gradients)");
  }
}

void ParallelMixinBase::describe(const TrainerBase& trainer, std::vector<ScreenLine>& lines) const {
  if (config_.data_parallel.devices.empty()) return;
  lines.push_back({"replicas", describe_replicas(config_.data_parallel.devices, trainer.device())});
}

// Its states are kept in a training's checkpoints.
std::shared_ptr<CommHook> ParallelMixinBase::make_hook(const TrainerBase& trainer) const {
  if (config_.use_fsdp || !config_.ddp.comm_hook) return nullptr;
  auto hook = Registry<CommHook>::instance().make(*config_.ddp.comm_hook);
  if (trainer.ranks().is_first()) {
    hook->tell_by([](const std::string& line) { Console::standard().line(line); });
  }
  return hook;
}

void ParallelMixinBase::set_up(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  if (ranks.is_single_rank()) {
    warn_of_options_of_several_ranks(config_, trainer.resolved_config());
    return;
  }
  compare_ranks(trainer);
  warn_where_nothing_is_sharded(config_, ranks);
  ranks.set_activity("wrapping the model");
  if (config_.use_fsdp && !config_.fsdp.deferred_init) trainer.initialize_model();
  ModelPlacement placement{.device = trainer.device(),
                           .deferred_init = trainer.take_deferred_init()};
  if (trainer.config().use_double_weight_precision) placement.dtype = at::kDouble;
  hook_ = make_hook(trainer);
  show_wrapping(ranks, [&] {
    trainer.wrap(
        data_parallel::dp(trainer.task_model(), config_, ranks, std::move(placement), hook_));
  });
  if (!hook_ || trainer.purpose() != Purpose::training) return;
  for (const NamedStateful& kept : hook_->kept_states()) {
    trainer.keep_state(kept.name, *kept.state);
  }
  const auto group = hook_->group();
  if (!group) return;
  group_states_ = std::make_unique<GroupStates>(trainer, *group);
  trainer.keep_state(fmt::format("local_sgd_of_{}_groups", group->count), *group_states_);
}

}  // namespace phalanx
