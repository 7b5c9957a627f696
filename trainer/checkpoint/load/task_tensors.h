// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/task_module.h"
#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

/// Leaves out of a source's model the modules of a task that these views have nothing of: another
/// task's, or those of a model that is used without its task. Returns them: "task.critic". What
/// differs within a module stays, and is for who fills the views to refuse.
std::vector<std::string> leave_out_unknown_modules(Contents& contents,
                                                   std::span<const ShardedTensorView> views);

/// The reverse: leaves out of the views the modules that the contents have nothing of.
std::vector<std::string> leave_out_absent_modules(std::vector<ShardedTensorView>& views,
                                                  const Contents& contents);

/// What a module of a task names to begin with (TaskModule::load_from), as sources_at. Throws
/// UserError where that is not there.
std::vector<std::filesystem::path> sources_of(const TaskModule& module);

}  // namespace phalanx
