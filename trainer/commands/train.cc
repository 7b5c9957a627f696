#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <optional>

#include "trainer/commands/build_trainer.h"
#include "trainer/commands/command.h"
#include "trainer/commands/errors.h"
#include "trainer/commands/load_config.h"
#include "trainer/commands/run_folder.h"
#include "trainer/commands/run_in_ranks.h"
#include "trainer/config/schema.h"
#include "trainer/core/memory.h"
#include "trainer/core/stop_signal.h"
#include "trainer/core/training_config.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

constexpr const char* kFolderKey = "exp_dir";  // in the job's store: restarts return to it

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

void keep_config(const World& world, const std::string& exp_dir, const config::Node& resolved) {
  on_first_rank(world.ranks(), [&] { write_config(exp_dir, resolved); });
}

BuiltTrainer start_in(const World& world, UserConfig user, const std::string& exp_dir) {
  const config::Node* exp_name = user.tree.find("exp_name");
  const bool named = exp_name != nullptr && !exp_name->is_null();
  if (const auto earlier = earlier_exp_name(exp_dir); earlier && !named) {
    user.tree.set("exp_name", config::Node::string(*earlier));
  }
  const config::Node resolved = resolve_config(user, exp_dir);
  const auto changed =
      check_against_earlier(exp_dir, user.entry->declaration(), resolved, user.overrides);
  if (const auto global_batch = earlier_global_batch(exp_dir)) {
    config::read<TrainingConfig>(*resolved.find("training"))
        .accumulation_keeping(*global_batch, world.ranks().world_size());
  }
  BuiltTrainer built = build_trainer(*user.entry, resolved, world);
  create_folder(world, exp_dir);
  for (const auto& line : changed) {
    Console::standard().line("changed since the last start: " + line);
  }
  keep_config(world, exp_dir, resolved);
  return built;
}

// Everything that can be wrong is found before the run's folder is made.
BuiltTrainer start_new_run(const World& world, const UserConfig& user) {
  const std::string exp_name = experiment_name(user);
  for (bool first = true;; first = false) {
    const Place place = choose_place(world, exp_name);
    if (place.returns) return start_in(world, user, place.exp_dir);
    if (const auto message = unfinished_run(exp_name); message && first) {
      Console::standard().line("note: " + *message);
    }
    const config::Node resolved = resolve_config(user, place.exp_dir);
    BuiltTrainer built = build_trainer(*user.entry, resolved, world);
    if (!create_folder(world, place.exp_dir)) continue;
    keep_config(world, place.exp_dir, resolved);
    return built;
  }
}

BuiltTrainer start(const World& world, const UserConfig& user) {
  const config::Node* given = user.tree.find("exp_dir");
  if (given == nullptr || given->is_missing()) return start_new_run(world, user);
  return start_in(world, user, resolve_config(user, std::nullopt).find("exp_dir")->text);
}

int train(World& world, const UserConfig& user) {
  StopSignal::install();
  keep_freed_memory();
  if (!world.ranks().is_first()) Console::standard().silence();
  const BuiltTrainer built = start(world, user);
  try {
    built.trainer->train();
  } catch (...) {
    rethrow_with_step(built.trainer->state().step);
  }
  const int signal = StopSignal::received();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace

int run_train(const Invocation& invocation) {
  const UserConfig user = load_config(invocation.arguments);
  // All that the config itself can be wrong in is found before a rank is started.
  const config::Node resolved = checked_config(user);
  return run_in_ranks(resolved, [&](World& world) { return train(world, user); });
}

}  // namespace phalanx
