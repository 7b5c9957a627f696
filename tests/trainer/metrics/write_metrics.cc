// SPDX-License-Identifier: Apache-2.0
// write_metrics FOLDER: logs a run that was interrupted and resumed to metrics.jsonl and to event
// files, so that TensorBoard's own reader can be compared with the former.

#include <cmath>
#include <limits>

#include "trainer/metrics/sinks/jsonl_sink.h"
#include "trainer/metrics/sinks/tensorboard_sink.h"

namespace {

phalanx::Record record_at(int64_t step, phalanx::Phase phase) {
  phalanx::Record record;
  record.phase = phase;
  record.state.step = step;
  record.state.elapsed = 0.1 * static_cast<double>(step);
  const double loss = 3.0 / std::sqrt(static_cast<double>(step));
  record.fields = {{"loss", step == 30 ? std::numeric_limits<double>::quiet_NaN() : loss},
                   {"lr", 6e-4 * std::exp(-0.01 * static_cast<double>(step))},
                   {"grad_norm", step == 40 ? std::numeric_limits<double>::infinity() : loss / 3},
                   {"skipped_steps", step / 7},
                   {"source", std::string("naïve")}};
  return record;
}

void log_run(const phalanx::RunDescription& run, std::optional<int64_t> resumed_step,
             int64_t last) {
  phalanx::JsonlSink jsonl({});
  phalanx::TensorboardSink tensorboard({});
  phalanx::Sink* const sinks[] = {&jsonl, &tensorboard};
  for (phalanx::Sink* sink : sinks) sink->open(run, resumed_step);
  for (int64_t step = resumed_step.value_or(0) + 10; step <= last; step += 10) {
    for (phalanx::Sink* sink : sinks) sink->write(record_at(step, phalanx::Phase::train));
    if (step % 50 != 0) continue;
    for (phalanx::Sink* sink : sinks) sink->write(record_at(step, phalanx::Phase::validate));
  }
  for (phalanx::Sink* sink : sinks) sink->close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  phalanx::RunDescription run;
  run.log_dir = argv[1];
  log_run(run, {}, 280);
  log_run(run, 200, 250);
  log_run(run, 250, 400);
  return 0;
}
