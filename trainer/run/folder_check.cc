// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/folder_check.h"

#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/config/tree/older_runs.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"
#include "trainer/ranks/environment/launch_job.h"
#include "trainer/run/earlier_attempt.h"
#include "trainer/run/lost_checkpoints.h"
#include "trainer/run/run_config.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_lock.h"

namespace phalanx {
namespace {

// A run without checkpoints begins with these. One that has some needs them no more, unless they
// hold adapters alone.
void check_source(const std::string& exp_dir, const RunPlan& plan, const config::Node& resolved) {
  const bool is_needed = plan.adapt_model || !newest_manifest(exp_dir);
  if (!is_needed || !plan.check_first_weights) return;
  if (plan.adapt_model && !std::filesystem::exists(*plan.load_from)) {
    throw UserError("checkpoint.load_from is '" + plan.load_from->string() +
                    "', which is not there: adapters need the model that they are trained beside "
                    "at every start; name where it is now");
  }
  plan.check_first_weights(resolved);
}

// With the other run's optimizer, step and modules of the task.
bool goes_on_from_another(const config::Node& resolved) {
  const config::Node* source = resolved.find_path("checkpoint.load_from");
  const config::Node* model_only = resolved.find_path("checkpoint.load_model_only");
  return source != nullptr && !source->is_null() && model_only != nullptr &&
         model_only->text == "false";
}

// A rank of this launch may still train on a node that the others have lost: it ends once it
// notices that they are gone.
std::chrono::milliseconds patience_with_holder(const std::string& exp_dir, const RunPlan& plan) {
  const std::string job = launch_job();
  const bool is_own = !job.empty() && job_of_holder(exp_dir) == job;
  return is_own ? patience_with_earlier_attempt(plan.join.timeout) : kLockPatience;
}

}  // namespace

UserConfig with_name(UserConfig user, const std::string& earlier_name) {
  if (!earlier_name.empty() && !is_given(user, "exp_name")) {
    user.tree.set("exp_name", config::Node::string(earlier_name));
  }
  return user;
}

UserConfig without_fields(UserConfig user, const std::string& lines) {
  std::vector<std::string> paths;
  std::istringstream text(lines);
  for (std::string path; std::getline(text, path);) paths.push_back(path);
  config::leave_without_value(user.tree, paths);
  return user;
}

void check_folder(const std::string& exp_dir, const UserConfig& given, const RunPlan& plan,
                  const std::optional<int64_t>& ranks, const std::function<void()>& meanwhile) {
  require_usable_folder(exp_dir);
  await_earlier_attempt(exp_dir, batch_job(), plan.join.timeout, meanwhile);
  if (ranks) require_free_run(exp_dir, patience_with_holder(exp_dir, plan), meanwhile);
  const UserConfig user = without_fields(with_name(given, earlier_exp_name(exp_dir).value_or("")),
                                         fields_earlier_lacks(exp_dir, given));
  const config::Node resolved = resolve_config(user, exp_dir);
  check_against_earlier(exp_dir, user, resolved);
  require_none_lost(exp_dir, resolved);
  const auto newest = newest_manifest(exp_dir);
  if (!newest || !ranks) return;
  training_config(resolved).accumulation_keeping(newest->global_batch_size,
                                                 plan.data_ranks(*ranks));
}

bool begins_anew(const UserConfig& user, const config::Node& resolved) {
  if (goes_on_from_another(resolved)) return false;
  return !is_given(user, "exp_dir") ||
         !newest_manifest(config::read<TrainerConfig>(resolved).exp_dir);
}

void check_folder_beforehand(const UserConfig& user, const config::Node& resolved,
                             const RunPlan& plan, const std::optional<int64_t>& ranks) {
  if (is_given(user, "exp_dir")) {
    const std::string exp_dir = config::read<TrainerConfig>(resolved).exp_dir;
    check_folder(exp_dir, user, plan, ranks);
    check_source(exp_dir, plan, resolved);
  } else {
    const auto exp_dir = free_run_folder(experiment_name(user));
    require_usable_folder(exp_dir);
    check_source(exp_dir.string(), plan, resolved);
  }
}

}  // namespace phalanx
