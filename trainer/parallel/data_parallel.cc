#include "trainer/parallel/data_parallel.h"

#include <memory>

#include "trainer/core/model_base.h"
#include "trainer/parallel/ddp.h"
#include "trainer/parallel/fsdp/fsdp.h"

namespace phalanx {

TaskModel fsdp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks) {
  return model.wrapped_by(std::make_shared<FullyShardedDataParallel>(
      model.model().module(), ranks, config.sharding_strategy, config.fsdp,
      config.sync_module_states));
}

TaskModel dp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks) {
  if (ranks.is_alone()) return model;
  return config.use_fsdp ? fsdp(model, config, ranks) : ddp(model, config, ranks);
}

}  // namespace phalanx
