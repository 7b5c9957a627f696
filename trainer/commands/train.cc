// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/host.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/sources.h"
#include "trainer/commands/command_table.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/save_signal.h"
#include "trainer/loop/stop_signal.h"
#include "trainer/loop/training_config.h"
#include "trainer/memory/memory.h"
#include "trainer/metrics/console.h"
#include "trainer/parallel/device.h"
#include "trainer/ranks/environment.h"
#include "trainer/ranks/key_value_store.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/errors.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_config.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_in_ranks.h"
#include "trainer/run/run_lock.h"
#include "trainer/run/starts.h"
#include "trainer/run/surroundings.h"

namespace phalanx {
namespace {

constexpr const char* kFolderKey = "exp_dir";  // in the job's store: restarts return to it

// What one `trainer train` is about.
struct Job {
  UserConfig user;
  std::string launcher;
  std::optional<RunLock> lock = {};  // rank 0's, on the run's folder, until the process ends
};

std::string launcher_name(const config::Node& resolved) {
  if (launched_as_rank()) {
    return std::getenv("TORCHELASTIC_RUN_ID") != nullptr ? "torchrun" : "environment";
  }
  const config::Node* section = resolved.find("launcher");
  return section == nullptr ? "none" : section->find("name")->text;
}

// Where that can be told before they are there.
std::optional<int64_t> number_of_ranks(const config::Node& resolved) {
  if (resolved.find("launcher") == nullptr) return 1;
  if (launcher_name(resolved) != "local") return std::nullopt;
  return config::parse_integer(resolved.find_path("launcher.processes")->text).value;
}

bool is_given(const UserConfig& user, std::string_view field) {
  const config::Node* value = user.tree.find(field);
  return value != nullptr && !value->is_missing() && !value->is_null();
}

// A run keeps the name that it has, unless the user gives another one.
UserConfig named(UserConfig user, const std::string& earlier_name) {
  if (!earlier_name.empty() && !is_given(user, "exp_name")) {
    user.tree.set("exp_name", config::Node::string(earlier_name));
  }
  return user;
}

// Throws UserError for all that speaks against training in a folder: what else is in it, another
// process, the config and the global batch of the run that it holds.
void check_folder(const std::string& exp_dir, const UserConfig& given,
                  const std::optional<int64_t>& ranks) {
  require_usable_folder(exp_dir);
  require_free_run(exp_dir);
  const UserConfig user = named(given, earlier_exp_name(exp_dir).value_or(""));
  const config::Node resolved = resolve_config(user, exp_dir);
  check_against_earlier(exp_dir, user, resolved);
  const auto newest = newest_manifest(exp_dir);
  if (!newest || !ranks) return;
  config::read<TrainingConfig>(*resolved.find("training"))
      .accumulation_keeping(newest->global_batch_size, *ranks);
}

// What a run without checkpoints begins with must be there; one that has some needs it no more.
void check_source(const std::string& exp_dir, const config::Node& resolved) {
  const config::Node* source = resolved.find_path("checkpoint.load_from");
  if (source != nullptr && source->is_scalar() && !source->is_null() && !newest_manifest(exp_dir)) {
    sources_at(source->text);
  }
}

void check_folder_beforehand(const UserConfig& user, const config::Node& resolved) {
  if (is_given(user, "exp_dir")) {
    const std::string& exp_dir = resolved.find("exp_dir")->text;
    check_folder(exp_dir, user, number_of_ranks(resolved));
    check_source(exp_dir, resolved);
  } else {
    const auto exp_dir = free_run_folder(experiment_name(user));
    require_usable_folder(exp_dir);
    check_source(exp_dir.string(), resolved);
  }
}

// A run that is to be built in a folder which rank 0 has chosen for all.
struct Place {
  std::string exp_dir;
  bool returns = false;  // A launcher's restart: the folder is this job's own.
};

Place choose_place(const World& world, const std::string& exp_name) {
  Place place;
  on_first_rank(world.ranks(), [&] {
    const auto earlier = world.job_store().get(kFolderKey, std::chrono::milliseconds(0));
    place.returns = earlier.has_value();
    place.exp_dir = earlier.value_or(free_run_folder(exp_name).string());
    require_usable_folder(place.exp_dir);
  });
  place.exp_dir = world.ranks().broadcast(place.exp_dir);
  place.returns = !world.ranks().broadcast(std::string(place.returns ? "returns" : "")).empty();
  return place;
}

// False on every rank when another process was faster and took the folder.
bool create_folder(const World& world, const std::string& exp_dir) {
  bool created = false;
  on_first_rank(world.ranks(), [&] {
    created = create_run_folder(exp_dir);
    if (created) world.job_store().set(kFolderKey, exp_dir);
  });
  return !world.ranks().broadcast(std::string(created ? "created" : "")).empty();
}

std::vector<RankPlace> places_of(const World& world) {
  std::vector<RankPlace> places;
  for (const auto& text :
       world.ranks().all_gather(host_name() + "\n" + describe_device(world.device()))) {
    const size_t end = text.find('\n');
    places.push_back({.host = text.substr(0, end), .device = text.substr(end + 1)});
  }
  return places;
}

// From here on the folder is this run's: no other process has it, and what is in it says so.
void enter(const World& world, Job& job, const UserConfig& user, const config::Node& resolved) {
  const std::string& exp_dir = resolved.find("exp_dir")->text;
  Start start{.launcher = job.launcher,
              .restart = read_environment().restart_count,
              .ranks = places_of(world),
              .environment = relevant_environment(whole_environment(), variables_taken(user.tree))};
  on_first_rank(world.ranks(), [&] {
    job.lock.emplace(exp_dir);
    // Once more: another process may have trained here while this one was building.
    start.changed = check_against_earlier(exp_dir, user, resolved);
    for (const auto& change : start.changed) {
      Console::standard().line("changed since the last start: " + to_string(change));
    }
    if (const auto newest = newest_manifest(exp_dir)) start.step = newest->state.step;
    append_start(exp_dir, format_start(start));
    write_config(exp_dir, user, resolved);
  });
}

std::unique_ptr<AnyTrainer> start_in(const World& world, Job& job, const std::string& exp_dir) {
  std::string earlier_name;
  on_first_rank(world.ranks(), [&] {
    check_folder(exp_dir, job.user, world.ranks().world_size());
    earlier_name = earlier_exp_name(exp_dir).value_or("");
  });
  const UserConfig user = named(job.user, world.ranks().broadcast(earlier_name));
  const config::Node resolved = resolve_config(user, exp_dir);
  auto trainer = build_trainer(*user.entry, resolved, world, Purpose::training);
  create_folder(world, exp_dir);
  enter(world, job, user, resolved);
  return trainer;
}

void tell_of_unfinished_run(const std::string& exp_name) {
  if (const auto message = unfinished_run(exp_name)) Console::standard().line("note: " + *message);
}

// Everything that can be wrong is found before the run's folder is made.
std::unique_ptr<AnyTrainer> start_new_run(const World& world, Job& job) {
  const std::string exp_name = experiment_name(job.user);
  for (bool first = true;; first = false) {
    const Place place = choose_place(world, exp_name);
    if (place.returns) return start_in(world, job, place.exp_dir);
    if (first && world.ranks().is_first()) tell_of_unfinished_run(exp_name);
    const config::Node resolved = resolve_config(job.user, place.exp_dir);
    auto trainer = build_trainer(*job.user.entry, resolved, world, Purpose::training);
    if (!create_folder(world, place.exp_dir)) continue;
    enter(world, job, job.user, resolved);
    return trainer;
  }
}

std::unique_ptr<AnyTrainer> start(const World& world, Job& job) {
  if (!is_given(job.user, "exp_dir")) return start_new_run(world, job);
  return start_in(world, job, resolve_config(job.user, std::nullopt).find("exp_dir")->text);
}

int train(const World& world, Job& job) {
  StopSignal::install();
  SaveSignal::install();
  keep_freed_memory();
  if (!world.ranks().is_first()) Console::standard().silence();
  const auto trainer = start(world, job);
  try {
    trainer->train();
  } catch (...) {
    rethrow_with_step(trainer->state().step);
  }
  // One that comes when all is done has stopped nothing.
  const int signal = trainer->finished() ? 0 : StopSignal::received();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace

int run_train(const Invocation& invocation) {
  const UserConfig user = load_config(invocation.arguments);
  // All that the config itself can be wrong in is found before a rank is started.
  const config::Node resolved = checked_config(user);
  // So is what the folder says; of ranks that others have started, rank 0 looks alone.
  if (!launched_as_rank()) check_folder_beforehand(user, resolved);
  Job job{.user = user, .launcher = launcher_name(resolved)};
  return run_in_ranks(resolved, [&job](World& world) { return train(world, job); });
}

}  // namespace phalanx
