// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "trainer/base/exit_codes.h"
#include "trainer/base/next_line.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/cli/terminal.h"
#include "trainer/config/tree/schema.h"
#include "trainer/host/ancestors.h"
#include "trainer/host/host.h"
#include "trainer/launch/abrupt_end.h"
#include "trainer/launch/launcher.h"
#include "trainer/loop/next_command.h"
#include "trainer/loop/training_config.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/shown_rank.h"
#include "trainer/parallel/device.h"
#include "trainer/ranks/collectives/at_length.h"
#include "trainer/ranks/collectives/numbers.h"
#include "trainer/ranks/environment/environment.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/run/beyond_limit.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/early_end.h"
#include "trainer/run/ends.h"
#include "trainer/run/environment_report.h"
#include "trainer/run/folder_check.h"
#include "trainer/run/launched_by.h"
#include "trainer/run/lost_checkpoints.h"
#include "trainer/run/ranks_check.h"
#include "trainer/run/run_config.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_in_ranks.h"
#include "trainer/run/starts.h"

namespace phalanx {
namespace {

constexpr const char* kFolderKey = "exp_dir";  // in the job's store: restarts return to it

std::string name_of_starter(const config::Node& resolved, const std::optional<Environment>& place) {
  if (place) return std::getenv("TORCHELASTIC_RUN_ID") != nullptr ? "torchrun" : place->launcher;
  return name_of_launcher(resolved);
}

// For messages, of this process and of those that it forks. A job's script may have said more.
void note_launch_lines(const Environment& place) {
  if (!launch_lines().empty()) return;
  export_launch_lines(lines_of_launcher(
      {.place = place, .command = command_line(), .ancestors = commands_of_ancestors()},
      [](const char* variable) { return std::getenv(variable); }));
}

// A folder that rank 0 has chosen for all.
struct ChosenFolder {
  std::string exp_dir;
  bool is_own = false;  // an earlier attempt of this job has made it
};

// That of an earlier attempt, which an agent that starts the ranks again has in its store, and a
// job that is requeued finds by its name.
std::optional<std::string> earlier_folder(const World& world, const RunPlan& plan,
                                          const std::string& exp_name,
                                          const std::function<void()>& still_at_it) {
  auto folder = world.job_store().get(kFolderKey, std::chrono::milliseconds(0));
  const BatchJob job = batch_job();
  if (folder || job.restarts == 0) return folder;
  const auto of_job = run_of_job(exp_name, job, plan.join.timeout, still_at_it);
  return of_job ? std::optional(of_job->string()) : std::nullopt;
}

ChosenFolder choose_folder(const World& world, const RunPlan& plan, const std::string& exp_name) {
  ChosenFolder chosen;
  on_first_rank_at_length(world.ranks(), [&](const auto& still_at_it) {
    const auto earlier = earlier_folder(world, plan, exp_name, still_at_it);
    chosen.is_own = earlier.has_value();
    chosen.exp_dir = earlier.value_or(free_run_folder(exp_name).string());
    require_usable_folder(chosen.exp_dir);
  });
  chosen.exp_dir = world.ranks().broadcast(chosen.exp_dir);
  chosen.is_own = broadcast_number(world.ranks(), chosen.is_own ? 1 : 0) == 1;
  return chosen;
}

// False on every rank when another process was faster and took the folder.
bool create_folder(const World& world, const std::string& exp_dir) {
  bool created = false;
  on_first_rank(world.ranks(), [&] {
    created = create_run_folder(exp_dir);
    if (created) world.job_store().set(kFolderKey, exp_dir);
  });
  return broadcast_number(world.ranks(), created ? 1 : 0) == 1;
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

// Whether this rank tells the end of ranks that others have started: the one that fails does, and
// else the first.
bool tells_the_end(const RankOutcome& outcome, const Environment& place) {
  if (!outcome.message.empty()) return true;
  const bool left_to_another = outcome.exit_code > 0 && outcome.exit_code < kSignalBase;
  return !left_to_another && place.rank == 0;
}

// None where the folder cannot be read any more: the run's own error says more.
std::string checkpoint_at_end(const std::string& exp_dir) {
  try {
    return newest_checkpoint(exp_dir);
  } catch (const std::exception&) {
    return "";
  }
}

// The run's outcome stands, whether or not it can be written.
void record(const std::string& exp_dir, const End& end) {
  try {
    append_end(exp_dir, format_end(end));
  } catch (const std::exception& error) {
    print_warning(fmt::format("the run's end is not recorded: {}", error.what()));
  }
}

void tell_of_earlier(const std::string& exp_dir, const std::vector<ConfigChange>& changed) {
  if (const auto note = last_start_without_end(exp_dir)) Console::standard().line("note: " + *note);
  for (const auto& change : changed) {
    Console::standard().line("changed since the last start: " + to_string(change));
  }
}

// Whether a start with these changes ends at once: by the run's limits, or early once more.
bool is_at_its_end(const std::string& exp_dir, const State& state, const config::Node& resolved,
                   const std::vector<ConfigChange>& changed) {
  if (state.validation_due) return false;
  if (training_config(resolved).limit_reached(state)) return true;
  return !recorded_early_end(exp_dir).empty() &&
         std::ranges::none_of(changed, [](const ConfigChange& change) {
           return change.path.starts_with("early_stopping");
         });
}

// A start that trains nothing has not made the run what `++` says: the run's config stays, and the
// next start says the change again. Returns whether there is such a change.
bool drop_forced(const std::string& exp_dir, const Manifest& newest, const config::Node& resolved,
                 std::vector<ConfigChange>& changed) {
  const State& state = newest.state;
  if (!is_at_its_end(exp_dir, state, resolved, changed)) return false;
  if (std::erase_if(changed, [](const auto& change) { return change.is_forced; }) == 0) {
    return false;
  }
  Console::standard().line(fmt::format(
      "note: the run is at its end, step {}: nothing is trained with what ++ sets, and it is not "
      "kept",
      state.step));
  return true;
}

// Once the launcher has ended by a signal, where its ranks have left that to it.
void print_next(const std::string& exp_dir, const config::Node& resolved,
                const RankOutcome& outcome) {
  const bool is_stopped = outcome.message.empty() && outcome.exit_code > kSignalBase;
  if (!is_stopped || outcome.told_elsewhere || !NextLine::is_left_to_launcher()) return;
  fmt::print("\nnext: {}\n", command_to_resume(exp_dir, resolved));
}

// The run that goes on keeps its own.
int64_t samples_a_step(const std::optional<Manifest>& newest, const config::Node& resolved,
                       int64_t ranks) {
  if (newest) return newest->global_batch_size;
  const TrainingConfig training = training_config(resolved);
  return training.batch_size * training.accumulation(ranks) * ranks;
}

// What rank 0 knows, on every rank: under torchrun each of them may be the one that tells the end.
BegunStart of_first_rank(const Ranks& ranks, BegunStart begun) {
  begun.number = broadcast_number(ranks, begun.number);
  begun.step = broadcast_number(ranks, begun.step);
  begun.checkpoint = ranks.broadcast(begun.checkpoint);
  begun.samples_a_step = broadcast_number(ranks, begun.samples_a_step);
  return begun;
}

}  // namespace

Run::Run(Arguments arguments) : Run(arguments, nullptr, {}) {}

Run::Run(Arguments arguments, std::shared_ptr<Launcher> launcher, std::string launcher_name)
    : user_(load_config(arguments)),
      resolved_(checked_config(user_)),
      plan_(plan_of(*user_.entry, resolved_)),
      launcher_(launcher ? std::move(launcher) : launcher_of(resolved_)),
      place_(launcher_->environment()),
      launcher_name_(launcher_name.empty() ? name_of_starter(resolved_, place_)
                                           : std::move(launcher_name)) {
  if (place_) {
    show_work_of_every_rank(place_->rank == 0);
    note_launch_lines(*place_);
  }
  // Where others have started the ranks, rank 0 alone looks at the folder, in `start`.
  if (!place_) {
    const std::optional<int64_t> ranks = launcher_->processes();
    check_folder_beforehand(user_, resolved_, plan_, ranks);
    if (ranks) check_ranks_of_nodes(plan_, {&*ranks, 1});
  }
  plan_.check_validation_sets();
  check_parameters(plan_, resolved_, !place_ && begins_anew(user_, resolved_),
                   place_ ? std::optional(place_->world_size) : launcher_->processes());
  products_ = choose_products(user_, resolved_, plan_, !place_ || place_->rank == 0);
  launcher_->when_attempt_fails(
      [this](const RankOutcome& outcome) { note_failed_attempt(outcome); });
}

int Run::in_ranks(const std::function<int(World&)>& main) {
  warn_of_idle_tasks(*launcher_, launcher_name_);
  warn_of_crowd(*launcher_);
  const RankOutcome outcome = outcome_of_ranks(plan_, *launcher_, main);
  last_end_.reset();
  if (const auto begun = progress_.begun()) return conclude(*begun, outcome);
  if (failed_) print_next(failed_->exp_dir, resolved_, outcome);  // between two rounds of ranks
  if (outcome.message.empty() || !failed_) return exit_code_or_throw(outcome);
  // No attempt has followed the last one: nodes were lost, and no others came, or what has failed
  // keeps the ranks from starting.
  print_error(outcome.message);
  fmt::print(stderr, "{}\n", where_it_stands(failed_->exp_dir, resolved_, failed_->end));
  return follows_failure() && outcome.exit_code == kUsersMistake ? kFailure : outcome.exit_code;
}

// Prints the message itself, so that the command behind it is not wrapped with it.
int Run::conclude(const BegunStart& begun, RankOutcome outcome) const {
  // What refuses a start that follows a failure, a full disk say, is that failure's consequence.
  const bool is_refused = outcome.exit_code == kUsersMistake && !follows_failure();
  const bool has_failed = !outcome.message.empty() && !is_refused;
  if (has_failed) outcome.exit_code = kFailure;
  const End end = end_of(begun, outcome);
  const bool is_teller = place_ ? tells_the_end(outcome, *place_) : !outcome.told_elsewhere;
  if (is_teller) record(begun.exp_dir, end);
  if (!outcome.message.empty()) print_error(outcome.message);
  if (has_failed) fmt::print(stderr, "{}\n", where_it_stands(begun.exp_dir, resolved_, end));
  print_next(begun.exp_dir, resolved_, outcome);
  return outcome.exit_code;
}

End Run::end_of(const BegunStart& begun, const RankOutcome& outcome) const {
  const std::string checkpoint = checkpoint_at_end(begun.exp_dir);
  RankOutcome told = outcome;
  if (told.exit_code == 0 && told.reason.empty()) told.reason = progress_.early_end();
  return {.start = begun.number,
          .outcome = told,
          .step = progress_.step(),
          .checkpoint = checkpoint,
          .has_saved = !checkpoint.empty() && checkpoint != begun.checkpoint,
          .has_begun = progress_.has_restored()};
}

void Run::note_failed_attempt(const RankOutcome& outcome) {
  const auto begun = progress_.begun();
  if (begun) failed_ = FailedAttempt{.exp_dir = begun->exp_dir, .end = end_of(*begun, outcome)};
  progress_.forget();
  if (begun && !outcome.told_elsewhere) record(begun->exp_dir, failed_->end);
}

std::unique_ptr<AnyTrainer> Run::start(const World& world) {
  if (!is_given(user_, "exp_dir")) return start_new_folder(world);
  const config::Node resolved = resolve_config(user_, std::nullopt);
  return start_in(world, config::read<TrainerConfig>(resolved).exp_dir);
}

std::unique_ptr<AnyTrainer> Run::start_new_folder(const World& world) {
  const std::string exp_name = experiment_name(user_);
  for (bool first = true;; first = false) {
    const ChosenFolder chosen = choose_folder(world, plan_, exp_name);
    if (chosen.is_own) return start_in(world, chosen.exp_dir);
    if (first && world.ranks().is_first()) {
      if (const auto note = unfinished_run(exp_name)) Console::standard().line("note: " + *note);
    }
    const auto [user, plan] = with_products(user_, plan_, chosen.exp_dir, products_, world.ranks());
    const config::Node resolved = resolve_config(user, chosen.exp_dir);
    auto trainer = build_trainer(*user.entry, plan, resolved, world, Purpose::training);
    if (!create_folder(world, chosen.exp_dir)) continue;
    take_folder(world, user, resolved, *trainer);
    return trainer;
  }
}

std::unique_ptr<AnyTrainer> Run::start_in(const World& world, const std::string& exp_dir) {
  std::string earlier_name;
  std::string earlier_lacks;
  on_first_rank_at_length(world.ranks(), [&](const auto& still_at_it) {
    check_folder(exp_dir, user_, plan_, world.ranks().world_size(), still_at_it);
    if (const auto note = new_run_beside_others(exp_dir)) {
      Console::standard().line("note: " + *note);
    }
    earlier_name = earlier_exp_name(exp_dir).value_or("");
    earlier_lacks = fields_earlier_lacks(exp_dir, user_);
  });
  const UserConfig going_on =
      without_fields(with_name(user_, world.ranks().broadcast(earlier_name)),
                     world.ranks().broadcast(earlier_lacks));
  const auto [user, plan] = with_products(going_on, plan_, exp_dir, products_, world.ranks());
  const config::Node resolved = resolve_config(user, exp_dir);
  auto trainer = build_trainer(*user.entry, plan, resolved, world, Purpose::training);
  create_folder(world, exp_dir);
  take_folder(world, user, resolved, *trainer);
  return trainer;
}

void Run::take_folder(const World& world, const UserConfig& user, const config::Node& resolved,
                      AnyTrainer& trainer) {
  const std::string exp_dir = config::read<TrainerConfig>(resolved).exp_dir;
  const BatchJob job = batch_job();
  Start start{.launcher = launcher_name_,
              .job = job,
              .restart = std::max(world.restart_count(), job.restarts),
              .ranks = places_of(world),
              .environment = relevant_environment(whole_environment(), variables_taken(user.tree))};
  BegunStart begun;
  begun.exp_dir = exp_dir;
  bool keeps_config = false;
  on_first_rank(world.ranks(), [&] {
    lock_.emplace(exp_dir);
    // Once more: another process may have trained here while this one was building.
    start.changed = check_against_earlier(exp_dir, user, resolved);
    tell_of_earlier(exp_dir, start.changed);
    if (const auto note = require_none_lost(exp_dir, resolved)) {
      Console::standard().line("note: " + *note);
    }
    const auto newest = newest_manifest(exp_dir);
    if (newest) {
      start.step = newest->state.step;
      keeps_config = drop_forced(exp_dir, *newest, resolved, start.changed);
      const auto beyond =
          beyond_limit(training_config(resolved), newest->state, newest->global_batch_size);
      if (beyond) print_warning(*beyond);
    }
    begun.samples_a_step =
        samples_a_step(newest, resolved, plan_.data_ranks(world.ranks().world_size()));
    begun.step = start.step;
    begun.checkpoint = newest_checkpoint(exp_dir);
    begun.number = append_start(exp_dir, format_start(start));
    progress_.begin(begun);  // at once: what fails from here on is this start's end
    if (!std::filesystem::exists(std::filesystem::path(exp_dir) / kConfigFile)) {
      write_config(exp_dir, user, resolved);
    }
  });
  progress_.begin(of_first_rank(world.ranks(), begun));
  if (world.ranks().is_single_rank() && !has_report_pipe()) last_end_.emplace(begun, progress_);
  trainer.when_step_ends([this](int64_t step) { progress_.reach(step); });
  // A checkpoint that does not fit the new config must not cost the run its own.
  trainer.when_restored([this, ranks = world.ranks(), exp_dir, user, resolved, keeps_config] {
    on_first_rank(ranks, [&] {
      if (!keeps_config) write_config(exp_dir, user, resolved);
    });
    progress_.note_restored();
  });
}

}  // namespace phalanx
