#include <exception>

#include "trainer/commands/build_trainer.h"
#include "trainer/commands/command.h"
#include "trainer/commands/errors.h"
#include "trainer/commands/load_config.h"
#include "trainer/commands/run_folder.h"
#include "trainer/core/memory.h"
#include "trainer/core/stop_signal.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

// Everything that can be wrong is found before the run's folder is made.
BuiltTrainer start_new_run(const UserConfig& user) {
  const std::string exp_name = experiment_name(user);
  if (const auto message = unfinished_run(exp_name)) Console::standard().line("note: " + *message);
  for (;;) {
    const auto exp_dir = free_run_folder(exp_name);
    const config::Node resolved = resolve_config(user, exp_dir.string());
    BuiltTrainer built = build_trainer(*user.entry, resolved);
    if (!create_run_folder(exp_dir)) continue;  // another process was faster
    write_config(exp_dir, resolved);
    return built;
  }
}

BuiltTrainer start_in(UserConfig user, const std::string& exp_dir) {
  const config::Node* exp_name = user.tree.find("exp_name");
  const bool named = exp_name != nullptr && !exp_name->is_null();
  if (const auto earlier = earlier_exp_name(exp_dir); earlier && !named) {
    user.tree.set("exp_name", config::Node::string(*earlier));
  }
  const config::Node resolved = resolve_config(user, exp_dir);
  const auto changed = check_against_earlier(exp_dir, user.entry->declaration(), resolved);
  BuiltTrainer built = build_trainer(*user.entry, resolved);
  create_run_folder(exp_dir);
  for (const auto& line : changed) {
    Console::standard().line("changed since the last start: " + line);
  }
  write_config(exp_dir, resolved);
  return built;
}

BuiltTrainer start(const UserConfig& user) {
  const config::Node* given = user.tree.find("exp_dir");
  if (given == nullptr || given->is_missing()) return start_new_run(user);
  return start_in(user, resolve_config(user, std::nullopt).find("exp_dir")->text);
}

}  // namespace

int run_train(Arguments arguments) {
  StopSignal::install();
  keep_freed_memory();
  const BuiltTrainer built = start(load_config(arguments));
  try {
    built.trainer->train();
  } catch (...) {
    rethrow_with_step(built.trainer->state().step);
  }
  const int signal = StopSignal::received();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace phalanx
