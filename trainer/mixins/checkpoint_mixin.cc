#include "trainer/mixins/checkpoint_mixin.h"

#include <fmt/format.h>

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
  if (manifest.global_batch_size != trainer.global_batch_size()) {
    throw UserError(fmt::format(
        "this run's steps hold {} samples, but the config now makes it {}: set "
        "training.global_batch_size={}",
        manifest.global_batch_size, trainer.global_batch_size(), manifest.global_batch_size));
  }
}

}  // namespace

void CheckpointConfig::describe(config::Schema<CheckpointConfig>& s) {
  s.field("save_every_n_steps", &CheckpointConfig::save_every_n_steps,
          "save after every n steps; null: not by steps")
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

void CheckpointMixinBase::restore(TrainerBase& trainer) {
  const auto folder = folder_of(trainer);
  require_writable(folder);
  for (const auto& done : clean_leftovers(folder)) Console::standard().line("checkpoint: " + done);
  const FoundCheckpoint found = find_latest(folder);
  for (const auto& warning : found.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (!found.newest) return;
  if (config_.resume == Resume::never) {
    throw UserError(fmt::format(
        "{} holds checkpoints and checkpoint.resume is never: choose another exp_dir, or set "
        "checkpoint.resume=auto to go on from step {}",
        trainer.config().exp_dir, found.newest->manifest.state.step));
  }
  require_same_data(trainer, found.newest->manifest);
  set_cpu_rng_state(
      load_checkpoint(*found.newest, model_views(trainer.model()), trainer.optimizer().state()));
  trainer.restore(found.newest->manifest.state);
  resumed_step_ = saved_step_ = found.newest->manifest.state.step;
}

void CheckpointMixinBase::save_if_due(TrainerBase& trainer) {
  const std::chrono::duration<double> since = Clock::now() - saved_at_;
  const bool by_steps =
      config_.save_every_n_steps && trainer.state().step % *config_.save_every_n_steps == 0;
  const bool by_time =
      config_.save_every_n_seconds && since.count() >= *config_.save_every_n_seconds;
  if (by_steps || by_time) save(trainer);
}

void CheckpointMixinBase::save_last(TrainerBase& trainer) {
  if (saved_step_ != trainer.state().step) save(trainer);
}

void CheckpointMixinBase::save(TrainerBase& trainer) {
  const Snapshot snapshot{.state = trainer.state(),
                          .model = model_views(trainer.model()),
                          .optimizer = trainer.optimizer().state(),
                          .rng_state = cpu_rng_state(),
                          .config = config::to_json(trainer.resolved_config()),
                          .data_fingerprint = trainer.training_data().fingerprint(),
                          .seed = static_cast<uint64_t>(trainer.training().seed),
                          .global_batch_size = trainer.global_batch_size(),
                          .world_size = 1,
                          .metrics = {}};
  const auto saved =
      save_checkpoint(folder_of(trainer), snapshot,
                      {.keep_last = config_.keep_last, .resumed_step = resumed_step_});
  for (const auto& warning : saved.warnings) Console::standard().line("warning: " + warning);
  saved_step_ = snapshot.state.step;
  saved_at_ = Clock::now();
}

}  // namespace phalanx
