// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/parallel_mixin.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <cstdio>
#include <string>

#include "trainer/api/parameters.h"
#include "trainer/base/version.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/parallel/agreement.h"
#include "trainer/parallel/data_parallel.h"

namespace phalanx {
namespace {

// One line a tensor: what replicas must have in common before their values can be made alike.
std::string describe_model(ModelBase& model) {
  std::string text;
  for (const auto& view : model_views(model)) {
    text += fmt::format("{}: {} [{}]\n", view.name, c10::toString(view.dtype),
                        fmt::join(view.shape, ", "));
  }
  return text;
}

std::string describe_data(const TrainerBase& trainer) {
  std::string text = fmt::format("training: {}\n", trainer.training_data().fingerprint());
  if (const auto* validation = trainer.validation_data()) {
    text += fmt::format("validation: {}\n", validation->fingerprint());
  }
  return text;
}

// Without the names that come from how a rank was started, which says nothing of the training.
std::string describe_config(const TrainerBase& trainer) {
  config::Node config = trainer.resolved_config();
  for (const char* name : {"exp_name", "exp_dir"}) config.set(name, config::Node::null());
  return config::print(config);
}

// On standard error, as what speaks against the config itself: it is not the run's own output.
void warn_where_nothing_is_sharded(const ParallelConfig& config, const Ranks& ranks) {
  if (!config.use_fsdp || !ranks.is_first()) return;
  const std::string warning =
      unsharded_warning(config.sharding_strategy, config.fsdp,
                        mesh_of(config.sharding_strategy, config.fsdp, ranks.rank(),
                                ranks.world_size(), ranks.local_world_size()));
  if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
}

}  // namespace

void ParallelMixinBase::set_up(TrainerBase& trainer) const {
  const Ranks& ranks = trainer.ranks();
  if (ranks.is_alone()) return;
  ranks.set_activity("the comparison of the ranks");
  require_agreement(ranks,
                    {{"the program", describe_program()},
                     {"versions", fmt::format("Phalanx {}, LibTorch {}", kVersion, TORCH_VERSION)},
                     {"the device", c10::DeviceTypeName(trainer.device().type())},
                     {"the config", describe_config(trainer)},
                     {"the model", describe_model(trainer.model())},
                     {"the data", describe_data(trainer)}});
  warn_where_nothing_is_sharded(config_, ranks);
  ranks.set_activity("wrapping the model");
  if (!config_.use_fsdp || !config_.fsdp.deferred_init) trainer.initialize_model();
  FsdpPlacement placement{.device = trainer.device(),
                          .deferred_init = trainer.take_deferred_init()};
  if (trainer.config().use_double_weight_precision) placement.dtype = at::kDouble;
  trainer.wrap(dp(trainer.task_model(), config_, ranks, std::move(placement)));
}

}  // namespace phalanx
