// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/train/train.h"

#include "trainer/api/state.h"
#include "trainer/base/exit_codes.h"
#include "trainer/base/stop_signal.h"
#include "trainer/commands/config/trainer_fields.h"
#include "trainer/commands/positionals.h"
#include "trainer/loop/save_signal.h"
#include "trainer/memory/memory.h"
#include "trainer/metrics/console.h"
#include "trainer/run/errors.h"
#include "trainer/run/stop_notice.h"

namespace phalanx {

int train(const World& world, Run& run) {
  announce_stops(world.ranks());
  StopSignal::install();
  SaveSignal::install();
  use_caching_allocator();
  if (!world.ranks().is_first()) Console::standard().silence();
  const auto trainer = run.start(world);
  try {
    trainer->train();
  } catch (...) {
    rethrow_with_step(trainer->state().step);
  }
  if (world.ranks().is_first()) run.note_early_end(trainer->early_end());
  // One that comes when all is done has stopped nothing.
  const int signal = trainer->finished() ? 0 : StopSignal::received();
  return exit_code_after(signal);
}

namespace {

int run(const Invocation& invocation) {
  Run run(invocation.arguments);
  return run.in_ranks([&run](World& world) { return train(world, run); });
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "train; the default command",
      .help =
          "Trains the model that the config describes. Several files are laid over each other "
          "from left to right, then come the overrides, in Hydra's grammar "
          "(docs/overrides.md). A run goes into a new folder, runs/NAME/run_N; with "
          "exp_dir=FOLDER it goes on from the newest good checkpoint there.",
      .examples = {"configs/quickstart.yaml", "my.yaml optimizer.lr=1e-3 '~validation'",
                   "train base.yaml large.yaml exp_dir=runs/large/run_0"},
      .positionals = {kConfig, kConfigs, kOverrides},
      .run = run,
      .details = fields_of_trainers,
  };
}

}  // namespace phalanx
