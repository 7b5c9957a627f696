// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_in_ranks.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/exit_codes.h"
#include "trainer/base/program.h"
#include "trainer/base/said_by.h"
#include "trainer/base/unix_time.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/terminal.h"
#include "trainer/host/gpus.h"
#include "trainer/io/file.h"
#include "trainer/launch/abrupt_end.h"
#include "trainer/launch/launcher.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/shown_rank.h"
#include "trainer/precision/numerics.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/communication_error.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/stores/tcp_store.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/run/environment_report.h"
#include "trainer/run/idle_tasks.h"
#include "trainer/run/last_end.h"
#include "trainer/run/ranks_on_cores.h"
#include "trainer/run/take_cores.h"
#include "trainer/tensors/error_text.h"
#include "trainer/topology/topology.h"
#include "trainer/topology/waits_by_load.h"

namespace phalanx {
namespace {

struct RankEnd {
  RankOutcome outcome;
  bool told_by_another = false;  // another rank has said why the run ended
};

RankEnd failed(const Ranks& ranks, const std::exception& error) {
  const bool users = dynamic_cast<const UserError*>(&error) != nullptr;
  std::string text = error_text(error);
  // An outcome without a message is an exit code that `main` has returned.
  if (text.empty()) text = "an exception without a message";
  const Failure failure = report_failure(ranks, error, std::move(text));
  Console::standard().line_of_copy("error: " + failure.message);
  return {.outcome = {.exit_code = users ? kUsersMistake : kFailure,
                      .message = failure.message,
                      .caused_by_peer = failure.caused_by_peer,
                      .rank = failure.cause},
          .told_by_another = !failure.is_first};
}

// The end of a rank by an exception that no thread catches.
RankEnd failed_in_thread(const Ranks& ranks, const std::string& activity,
                         const std::exception& error) {
  if (is_communication_error(error)) return failed(ranks, error);
  if (is_gloo_mismatch(error)) {
    // What each rank was about to do says more than who has found it out.
    return failed(ranks, CommunicationError(fmt::format(
                             "a collective of {} ranks failed{}: the ranks call other "
                             "collectives, or with tensors of other sizes; start them with "
                             "PHALANX_CHECK_COLLECTIVES=1, which names the calls "
                             "(docs/library.md, Collectives): {}",
                             ranks.world_size(), activity.empty() ? "" : " in " + activity,
                             error_text(error))));
  }
  const std::string place = activity.empty() ? "" : activity + ": ";
  return failed(ranks, std::runtime_error(fmt::format("{}no thread caught this exception: {}",
                                                      place, error_text(error))));
}

// The world ends after the failure in it has been told: the others see its connections close.
RankEnd run_in_world(World& world, const std::function<int(World&)>& main) {
  try {
    const int exit_code = main(world);
    world.close();
    return {.outcome = {.exit_code = exit_code, .message = {}}};
  } catch (const std::exception& error) {
    return failed(world.ranks(), error);
  }
}

// torchrun shows what it finds in this file (torch/distributed/elastic/multiprocessing/errors).
void write_error_file(const std::string& message) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  const nlohmann::json extra = {{"py_callstack", ""},
                                {"timestamp", std::to_string(static_cast<int64_t>(unix_time()))}};
  const nlohmann::json content = {{"message", {{"message", message}, {"extraInfo", extra}}}};
  try {
    replace_file(path, content.dump());
  } catch (const IoError&) {
    // The message is on the screen too.
  }
}

// The last words of a thread of this rank that is not the one that trains.
LastWords last_words(const Ranks& ranks) {
  const std::shared_ptr<const Activity> activity = ranks.group().activity;
  auto told_by_another = std::make_shared<std::atomic<bool>>(false);
  return {
      .prefix = ranks.is_single_rank() ? "error: " : fmt::format("error: rank {}: ", ranks.rank()),
      .activity = {activity, &activity->shared()},
      .outcome_of =
          [ranks, activity, told_by_another](const std::exception& error) {
            const RankEnd end = failed_in_thread(ranks, activity->shared().text(), error);
            *told_by_another = end.told_by_another;
            return end.outcome;
          },
      .tell =
          [ranks, told_by_another](const RankOutcome& outcome) {
            if (*told_by_another) return;
            const std::string message =
                ranks.is_single_rank() ? outcome.message : said_by(ranks.rank(), outcome.message);
            print_error(message);
            write_error_file(message);
          },
      .record = LastEnd::record};
}

RankEnd run_rank(const Environment& environment, const RunPlan& plan,
                 const std::function<int(World&)>& main) {
  show_only_errors_of_c10d();
  try {
    prepare_numerics(plan.numerics);
    show_work_of_every_rank(environment.rank == 0);
    World world = init_from_env(environment, plan.join);
    const AbruptEnd told(last_words(world.ranks()));
    return run_in_world(world, [&plan, &main](World& joined) {
      take_cores(joined, plan.numa_binding);
      const WaitsByLoad waits(ranks_on_cores(joined.ranks()));
      return main(joined);
    });
  } catch (const std::exception& error) {
    return failed(Ranks(), error);  // it has not come to the others
  }
}

/// What starts the ranks of a program without any launcher: its one process trains.
class NoLauncher : public Launcher {
 public:
  RankOutcome launch(const RankMain& rank_main) override { return rank_main(Environment()); }
  std::optional<int64_t> processes() const override { return 1; }
};

RankOutcome run_as_launched(Launcher& launcher, const Environment& place, const RunPlan& plan,
                            const std::function<int(World&)>& main) {
  bool told_by_another = false;
  RankOutcome outcome = launcher.launch_at(place, [&](const Environment& environment) {
    RankEnd end = run_rank(environment, plan, main);
    told_by_another = end.told_by_another;
    return end.outcome;
  });
  if (outcome.message.empty()) return outcome;
  if (told_by_another) return {.exit_code = outcome.exit_code, .message = {}};
  if (place.world_size > 1 && !outcome.rank) {
    outcome.message = said_by(place.rank, outcome.message);
    outcome.rank = place.rank;
  }
  write_error_file(outcome.message);
  return outcome;
}

}  // namespace

std::string name_of_launcher(const config::Node& resolved) {
  return chosen_section<Launcher>(resolved) == nullptr ? "none" : chosen_name<Launcher>(resolved);
}

void warn_of_idle_tasks(const Launcher& launcher, std::string_view name) {
  if (name == "alone" || name == "launch" || launcher.processes() != 1) return;
  if (launcher.environment()) return;
  std::vector<std::string> command = command_line();
  if (!command.empty()) command.front() = program_name();
  const auto idle = idle_tasks([](const char* variable) { return std::getenv(variable); }, command);
  if (!idle) return;
  print_warning(idle->warning);
  fmt::print(stderr, "  {}\n", idle->command);  // as it stands: a warning is wrapped
}

void warn_of_crowd(const Launcher& launcher) {
  constexpr int64_t kMostRanksOfACore = 4;
  const int64_t processes = launcher.processes().value_or(1);
  if (launcher.environment() || processes <= kMostRanksOfACore || usable_gpus() > 0) return;
  const int64_t cores = usable_cores();
  if (processes <= kMostRanksOfACore * cores) return;
  print_warning(
      fmt::format("{} ranks share {} core{} of this host: they wait for each other most of the "
                  "time, and each holds memory; launcher.processes=auto starts one a core",
                  processes, cores, cores == 1 ? "" : "s"));
}

std::shared_ptr<Launcher> launcher_of(const config::Node& resolved) {
  if (chosen_section<Launcher>(resolved) == nullptr) return std::make_shared<NoLauncher>();
  return make_chosen<Launcher>(resolved);
}

RankOutcome outcome_of_ranks(const RunPlan& plan, Launcher& launcher,
                             const std::function<int(World&)>& main) {
  if (plan.join.device == DeviceChoice::cpu) hide_gpus();  // also from a launcher that counts them
  if (const auto place = launcher.environment()) {
    return run_as_launched(launcher, *place, plan, main);
  }
  return launcher.launch(
      [&](const Environment& environment) { return run_rank(environment, plan, main).outcome; });
}

int exit_code_or_throw(const RankOutcome& outcome) {
  if (outcome.message.empty()) return outcome.exit_code;
  if (outcome.exit_code == kUsersMistake) throw UserError(outcome.message);
  throw std::runtime_error(outcome.message);
}

int run_in_ranks(const RunPlan& plan, const config::Node& resolved,
                 const std::function<int(World&)>& main) {
  const auto launcher = launcher_of(resolved);
  warn_of_idle_tasks(*launcher, name_of_launcher(resolved));
  warn_of_crowd(*launcher);
  return exit_code_or_throw(outcome_of_ranks(plan, *launcher, main));
}

}  // namespace phalanx
