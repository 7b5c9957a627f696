// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/state.h"
#include "trainer/commands/command_table.h"
#include "trainer/loop/save_signal.h"
#include "trainer/loop/stop_signal.h"
#include "trainer/memory/memory.h"
#include "trainer/metrics/console.h"
#include "trainer/run/errors.h"
#include "trainer/run/run.h"

namespace phalanx {
namespace {

// What every rank does.
int train(const World& world, Run& run) {
  StopSignal::install();
  SaveSignal::install();
  keep_freed_memory();
  if (!world.ranks().is_first()) Console::standard().silence();
  const auto trainer = run.start(world);
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
  Run run(invocation.arguments);
  return run.in_ranks([&run](World& world) { return train(world, run); });
}

}  // namespace phalanx
