// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/data_parallel.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "trainer/api/model_base.h"
#include "trainer/api/parameters.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/deferred_values.h"
#include "trainer/parallel/fsdp/fsdp.h"

namespace phalanx::data_parallel {
namespace {

LowPrecision low_precision(at::ScalarType dtype) {
  if (dtype == at::kBFloat16) return LowPrecision::bfloat16;
  if (dtype == at::kHalf) return LowPrecision::float16;
  throw std::logic_error("autocast to a type that is not of low precision");
}

bool keep(const c10::StorageImpl* /*storage*/, const at::Tensor& /*values*/) { return true; }

}  // namespace

TaskModel ddp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks,
              const ModelPlacement& placement, std::shared_ptr<CommHook> hook) {
  torch::nn::Module& module = model.model().module();
  const bool is_drawn_by_first = config.sync_module_states && placement.deferred_init != nullptr;
  if (is_drawn_by_first) {
    broadcast_present(module, ranks, config.ddp.broadcast_buffers, placement.deferred_init.get());
    draw_on_first_rank(*placement.deferred_init, ranks, keep);
  } else if (placement.deferred_init) {
    placement.deferred_init->fill();
  }
  if (placement.dtype == at::kDouble) to_double(model.model());
  if (placement.device) move_to(model.model(), *placement.device);
  return model.wrapped_by(std::make_shared<DistributedDataParallel>(
      module, ranks, config.ddp, config.sync_module_states && !is_drawn_by_first, std::move(hook),
      config.sync_batchnorm));
}

TaskModel fsdp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks,
               ModelPlacement placement) {
  FsdpOptions options = config.fsdp;
  if (const auto autocast = model.autocast(); autocast && !options.mixed_precision.param_dtype) {
    options.mixed_precision.param_dtype = low_precision(autocast->dtype);
  }
  placement.cpu_offload = config.cpu_offload;
  return model.with_autocast(std::nullopt)
      .wrapped_by(std::make_shared<FullyShardedDataParallel>(
          model.model().module(), ranks, config.sharding_strategy, options,
          config.sync_module_states, std::move(placement), config.sync_batchnorm));
}

TaskModel dp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks,
             ModelPlacement placement, std::shared_ptr<CommHook> hook) {
  if (ranks.is_single_rank()) return model;
  return config.use_fsdp ? fsdp(model, config, ranks, std::move(placement))
                         : ddp(model, config, ranks, placement, std::move(hook));
}

}  // namespace phalanx::data_parallel
