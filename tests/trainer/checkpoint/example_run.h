#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/find.h"
#include "trainer/checkpoint/load.h"
#include "trainer/checkpoint/load_first_good.h"
#include "trainer/checkpoint/save.h"

namespace phalanx {

/// The tensors of a small run, whose values follow from the step, so that a test can tell whether
/// a checkpoint is whole and of one step.
struct ExampleRun {
  at::Tensor weight = at::zeros({64, 16});
  at::Tensor bias = at::zeros({16}, at::kDouble);
  at::Tensor moment = at::zeros({64, 16});
  at::Tensor rng = at::zeros({40}, at::kByte);

  void set_to(int64_t step) {
    weight.copy_(at::arange(weight.numel()).reshape(weight.sizes()).add(step));
    bias.fill_(static_cast<double>(step) + 0.25);
    moment.fill_(-static_cast<double>(step));
    rng.fill_(step % 251);
  }

  std::vector<ShardedTensorView> model() const {
    return {whole_tensor("h.0.weight", weight), whole_tensor("h.0.bias", bias)};
  }
  std::vector<ShardedTensorView> optimizer() const {
    return {whole_tensor("h.0.weight.exp_avg", moment)};
  }

  /// The snapshot at the end of `step`, with these tensors' values set to it.
  Snapshot snapshot(int64_t step) {
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

  /// Whether all values are those of `step`.
  bool is_at(int64_t step) const {
    ExampleRun expected;
    expected.set_to(step);
    return at::equal(weight, expected.weight) && at::equal(bias, expected.bias) &&
           at::equal(moment, expected.moment) && at::equal(rng, expected.rng);
  }
};

/// The newest good checkpoint of a folder, as a run that goes on gets it.
struct FoundRun {
  int64_t step = -1;                  ///< None: there is no checkpoint.
  bool is_whole = false;              ///< All values are that step's.
  std::vector<std::string> warnings;  ///< What was skipped.
};

inline FoundRun load_newest(const std::filesystem::path& checkpoints_dir) {
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
