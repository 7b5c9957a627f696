// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/api/task_model.h"
#include "trainer/parallel/parallel_config.h"
#include "trainer/parallel/placement.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
class CommHook;
}

/// The names of the ml package's module.
namespace phalanx::data_parallel {

/// The task model in DDP (ml's ddp). `hook`: in the place of the comm hook that the config names.
TaskModel ddp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks,
              const ModelPlacement& placement = {}, std::shared_ptr<CommHook> hook = nullptr);

/// The task model in FSDP (ml's fsdp). Where it has autocast, its units compute in that precision
/// instead, from low-precision copies that are gathered. Throws UserError for options that do not
/// fit the world or the model.
TaskModel fsdp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks,
               ModelPlacement placement = {});

/// The task model wrapped as the config says, in DDP or FSDP; in a world of one as it is (ml's dp).
TaskModel dp(const TaskModel& model, const ParallelConfig& config, const Ranks& ranks,
             ModelPlacement placement = {}, std::shared_ptr<CommHook> hook = nullptr);

}  // namespace phalanx::data_parallel
