// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trainer/plan/run_plan.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// The config of a run that had a name: it keeps it, unless the user gives another one.
UserConfig with_name(UserConfig user, const std::string& earlier_name);

/// The config with no value in the fields that an older program's run goes on without: those of
/// `fields_without_value`, one a line.
UserConfig without_fields(UserConfig user, const std::string& lines);

/// Throws UserError for everything that forbids training in a folder: other things in it, another
/// process that trains there, a config or global batch (on so many ranks, where known) that the run
/// in it does not allow. Waits for an earlier attempt of this batch job that still trains there,
/// and calls `meanwhile` again and again then.
void check_folder(const std::string& exp_dir, const UserConfig& given, const RunPlan& plan,
                  const std::optional<int64_t>& ranks, const std::function<void()>& meanwhile = {});

/// The same for the folder that a run will have, before its ranks are started: the one that the
/// user gave, or the next free one. Throws UserError also where the source of its first weights is
/// missing or does not fit, and is needed. Where the number of `ranks` is not known, other nodes
/// may start some, and may train in the folder already: who joins them asks why_not_join.
void check_folder_beforehand(const UserConfig& user, const config::Node& resolved,
                             const RunPlan& plan, const std::optional<int64_t>& ranks);

/// Whether a run has no checkpoint yet, and goes on from no other run's
/// (checkpoint.load_model_only=false): it begins with first weights.
bool begins_anew(const UserConfig& user, const config::Node& resolved);

}  // namespace phalanx
