// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/training.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "trainer/api/parameters.h"
#include "trainer/base/stop_signal.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/ranks/stores/group_store.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/load_config.h"

namespace phalanx::test_device {
namespace {

constexpr int64_t kBytesOfText = 20000;

// Bytes without an end in sight, the same on every call.
void write_text(const std::filesystem::path& path) {
  std::ofstream text(path);
  for (int64_t i = 0; i < kBytesOfText; ++i) text << static_cast<char>('a' + i * i % 7 + i % 11);
}

std::string config_of_run(const TrainingRun& run) {
  return fmt::format(R"(
name: supervised
exp_dir: {0}
task:
  name: language_modeling
  data: {{path: {0}/text.txt, sequence_length: 16, validation_fraction: 0.1}}
  sample: {{tokens: 1}}
model:
  name: gpt2
  vocab_size: 256
  n_positions: 16
  n_layer: 2
  n_head: 2
  n_embd: 32
  embd_pdrop: 0.0
  attn_pdrop: 0.0
  resid_pdrop: 0.0
optimizer: {{name: adamw, lr: 0.001}}
training: {{max_steps: {1}, batch_size: 4, clip_grad_norm: 1.0}}
logging: {{every_n_steps: 4, sinks: []}}
validation: {{at_end: false}}
)",
                     run.folder.string(), run.steps);
}

}  // namespace

World world_of_one(at::Device device) { return World(Ranks(), device, make_local_store()); }

std::unique_ptr<AnyTrainer> make_trainer(const TrainingRun& run, const World& world) {
  if (world.ranks().is_first()) write_text(run.folder / "text.txt");
  world.ranks().barrier();
  config::Diagnostics mistakes;
  config::Node tree = config::parse_yaml(config_of_run(run), "test", mistakes);
  mistakes.throw_if_any();
  const UserConfig user = config_of(std::move(tree), run.overrides);
  const config::Node resolved = resolve_config(user, run.folder.string());
  return build_trainer(*user.entry, plan_of(*user.entry, resolved), resolved, world,
                       Purpose::training);
}

Trained train(const TrainingRun& run, const World& world) {
  StopSignal::install();
  const auto trainer = make_trainer(run, world);
  Trained trained;
  std::optional<SyncCount> count;
  trainer->when_restored([&] { count.emplace(); });
  trainer->when_step_ends([&](int64_t step) {
    trained.syncs[step] = count->all();
    count.emplace();
  });
  trainer->train();
  const auto& base = dynamic_cast<const TrainerBase&>(*trainer);
  for (const auto& parameter : named_parameters(base.model())) {
    const NamedParameter local = base.task_model().local(parameter);
    trained.weights[parameter.name] = local.tensor.detach().to(at::kCPU, /*non_blocking=*/false,
                                                               /*copy=*/true);
  }
  return trained;
}

}  // namespace phalanx::test_device
