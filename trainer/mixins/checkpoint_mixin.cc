#include "trainer/mixins/checkpoint_mixin.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "trainer/checkpoint/gather.h"
#include "trainer/checkpoint/layout.h"
#include "trainer/checkpoint/load.h"
#include "trainer/checkpoint/save.h"
#include "trainer/config/print.h"
#include "trainer/config/user_error.h"
#include "trainer/core/parameters.h"
#include "trainer/core/random.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

std::filesystem::path folder_of(const TrainerBase& trainer) {
  return std::filesystem::path(trainer.config().exp_dir) / "checkpoints";
}

// What the samples are and how they fall into steps must not change under a run.
void require_same_data(const TrainerBase& trainer, const Manifest& manifest) {
  if (manifest.data_fingerprint != trainer.training_data().fingerprint()) {
    throw UserError(
        "the training data is not what this run was trained on (its fingerprint differs): give "
        "back the same files, or start a new run without exp_dir");
  }
}

// The states of all ranks' generators, by rank. All ranks compute on the same type of device.
std::vector<RngStates> gather_rng_states(const Ranks& ranks, at::Device device) {
  std::vector<RngStates> of_ranks(static_cast<size_t>(ranks.world_size()));
  for (const auto& [type, mine] : rng_states(device)) {
    const at::Tensor all = at::empty({ranks.world_size(), mine.numel()}, mine.options());
    ranks.all_gather(all, mine);
    for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
      of_ranks[rank][type] = all[static_cast<int64_t>(rank)];
    }
  }
  return of_ranks;
}

}  // namespace

void CheckpointConfig::describe(config::Schema<CheckpointConfig>& s) {
  s.field("save_every_n_steps", &CheckpointConfig::save_every_n_steps,
          "save after every n steps; null: not by steps")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("save_every_n_seconds", &CheckpointConfig::save_every_n_seconds,
          "save after the step that ends n or more seconds after the last save; null: not by time")
      .unit("s")
      .greater_than(0)
      .resume_may_change();
  s.field("keep_last", &CheckpointConfig::keep_last,
          "how many of the newest checkpoints stay; null: all")
      .unit("checkpoints")
      .at_least(1)
      .resume_may_change();
  s.field("resume", &CheckpointConfig::resume,
          "auto: go on from the newest good checkpoint in exp_dir; never: refuse a folder with one")
      .choices({{"auto", Resume::automatic}, {"never", Resume::never}})
      .resume_may_change();
}

// Rank 0 reads every byte of it; the others take its word.
std::optional<VerifiedCheckpoint> CheckpointMixinBase::find_newest(TrainerBase& trainer) const {
  const auto folder = folder_of(trainer);
  FoundCheckpoint found;
  on_first_rank(trainer.ranks(), [&] {
    require_writable(folder);
    for (const auto& done : clean_leftovers(folder)) {
      Console::standard().line("checkpoint: " + done);
    }
    found = find_latest(folder);
    for (const auto& warning : found.warnings) fmt::print(stderr, "warning: {}\n", warning);
  });
  const std::string path =
      trainer.ranks().broadcast(found.newest ? found.newest->path.string() : std::string());
  if (path.empty() || found.newest) return std::move(found.newest);
  return VerifiedCheckpoint{.path = path, .manifest = load_manifest(path)};
}

void CheckpointMixinBase::restore(TrainerBase& trainer) {
  trainer.ranks().set_activity("restoring a checkpoint");
  const auto newest = find_newest(trainer);
  if (!newest) return;
  if (config_.resume == Resume::never) {
    throw UserError(fmt::format(
        "{} holds checkpoints and checkpoint.resume is never: choose another exp_dir, or set "
        "checkpoint.resume=auto to go on from step {}",
        trainer.config().exp_dir, newest->manifest.state.step));
  }
  require_same_data(trainer, newest->manifest);
  trainer.keep_global_batch_size(newest->manifest.global_batch_size);
  const RngStates random = load_checkpoint(*newest, trainer.task_model().views(),
                                           trainer.optimizer().state(), trainer.ranks().rank());
  trainer.restore(newest->manifest.state);
  // A rank or a device that there was not has no state to go on from.
  trainer.seed_rank();
  set_rng_states(random, trainer.device());
  resumed_step_ = saved_step_ = newest->manifest.state.step;
}

void CheckpointMixinBase::save_if_due(TrainerBase& trainer) {
  const bool by_steps =
      config_.save_every_n_steps && trainer.state().step % *config_.save_every_n_steps == 0;
  const auto by_time = [&] {
    const std::chrono::duration<double> since = Clock::now() - saved_at_;
    return trainer.of_first_rank(since.count()) >= *config_.save_every_n_seconds;
  };
  if (by_steps || (config_.save_every_n_seconds && by_time())) save(trainer);
}

void CheckpointMixinBase::save_last(TrainerBase& trainer) {
  if (saved_step_ != trainer.state().step) save(trainer);
}

void CheckpointMixinBase::save(TrainerBase& trainer) {
  const Ranks& ranks = trainer.ranks();
  ranks.set_activity(fmt::format("saving step {}", trainer.state().step));
  Gathering model(ranks, trainer.task_model().views());
  Gathering optimizer(ranks, trainer.optimizer().state());
  std::size_t fetched = 0;
  const Snapshot snapshot{.state = trainer.state(),
                          .model = model.views(),
                          .optimizer = optimizer.views(),
                          .fetch =
                              [&](const ShardedTensorView& view) {
                                const bool is_models = fetched++ < model.views().size();
                                return (is_models ? model : optimizer).fetch(view);
                              },
                          .rng_states = gather_rng_states(ranks, trainer.device()),
                          .config = config::to_json(trainer.resolved_config()),
                          .data_fingerprint = trainer.training_data().fingerprint(),
                          .seed = static_cast<uint64_t>(trainer.training().seed),
                          .global_batch_size = trainer.global_batch_size(),
                          .world_size = ranks.world_size(),
                          .metrics = {}};
  if (!ranks.is_first()) {
    model.finish();
    optimizer.finish();
  }
  on_first_rank(ranks, [&] {
    SavedCheckpoint saved;
    try {
      saved = save_checkpoint(folder_of(trainer), snapshot,
                              {.keep_last = config_.keep_last, .resumed_step = resumed_step_});
    } catch (const CommunicationError&) {
      throw;
    } catch (...) {
      // The others are still giving their parts, and are to learn of the failure after that.
      model.finish();
      optimizer.finish();
      throw;
    }
    for (const auto& warning : saved.warnings) Console::standard().line("warning: " + warning);
  });
  saved_step_ = snapshot.state.step;
  saved_at_ = Clock::now();
}

}  // namespace phalanx
