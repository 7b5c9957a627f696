// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/checkpoint/example_run.h"

#include "tests/tensors.h"
#include "trainer/checkpoint/load/load_first_good.h"

namespace phalanx {

void ExampleRun::set_to(int64_t step) {
  weight.copy_(tensors::arange(weight.numel()).reshape(weight.sizes()).add(step));
  bias.fill_(static_cast<double>(step) + 0.25);
  moment.fill_(-static_cast<double>(step));
  rng.fill_(step % 251);
}

std::vector<ShardedTensorView> ExampleRun::model() const {
  return {whole_tensor("h.0.weight", weight), whole_tensor("h.0.bias", bias)};
}

std::vector<ShardedTensorView> ExampleRun::optimizer() const {
  return {whole_tensor("h.0.weight.exp_avg", moment)};
}

Snapshot ExampleRun::snapshot(int64_t step) {
  set_to(step);
  Snapshot snapshot;
  snapshot.state.step = step;
  snapshot.state.samples = 8 * step;
  snapshot.model = model();
  snapshot.optimizer = optimizer();
  snapshot.rng_states = {{"cpu", rng}};
  snapshot.config = R"({"name":"supervised"})";
  snapshot.data_fingerprint = "example";
  snapshot.seed = 7;
  snapshot.global_batch_size = 8;
  snapshot.metrics = {{"loss", 1.0 / static_cast<double>(step + 1)}};
  return snapshot;
}

bool ExampleRun::is_at(int64_t step) const {
  ExampleRun expected;
  expected.set_to(step);
  return weight.equal(expected.weight) && bias.equal(expected.bias) &&
         moment.equal(expected.moment) && rng.equal(expected.rng);
}

FoundRun load_newest(const std::filesystem::path& checkpoints_dir) {
  ExampleRun run;
  const LoadedCheckpoint loaded =
      load_first_good({}, candidates(checkpoints_dir), [&](const Checkpoint& checkpoint) {
        run.rng = load_checkpoint(checkpoint, run.model(), run.optimizer()).rng_states.at("cpu");
      });
  if (!loaded.checkpoint) return {};
  const int64_t step = loaded.checkpoint->manifest.state.step;
  return {.step = step, .is_whole = run.is_at(step), .warnings = loaded.warnings};
}

}  // namespace phalanx
