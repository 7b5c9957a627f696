// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/going_back.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/stateful.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/cannot_go_back.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/going_on.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

void require_kept_states(const TrainerBase& trainer, const Checkpoint& checkpoint) {
  const std::vector<std::string> lacking = lacking_parts(trainer, checkpoint.manifest);
  if (lacking.empty()) return;
  throw CannotGoBack(fmt::format(
      "{} holds no state of {}: steps that are undone would stay in it. Set guards.on_nonfinite "
      "and guards.on_spike to skip or stop until a newer checkpoint is saved",
      checkpoint.path.filename().string(), fmt::join(lacking, ", ")));
}

// Every rank calls it, and throws alike.
LoadedCheckpoint load_newest(const Ranks& ranks, std::span<const std::filesystem::path> found,
                             const std::function<void(const Checkpoint&)>& load) {
  try {
    return load_first_good(ranks, found, load);
  } catch (const CheckpointError& error) {
    throw CannotGoBack(error.what());
  }
}

}  // namespace

bool may_go_back(const config::Node& resolved) {
  for (const char* const field : {"guards.on_nonfinite", "guards.on_spike"}) {
    const config::Node* action = resolved.find_path(field);
    if (action != nullptr && action->text == "rollback") return true;
  }
  return false;
}

bool differs_in_kept_state(const TrainerBase& trainer, const Manifest& manifest) {
  if (!lacking_parts(trainer, manifest).empty()) return true;
  const auto parsed = [](const std::string& text) {
    return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  };
  const auto differs = [&](const NamedStateful& kept) {
    const auto there = manifest.parts.find(kept.name);
    return there != manifest.parts.end() && parsed(there->second) != parsed(kept.state->json());
  };
  return std::ranges::any_of(trainer.kept_state(), differs);
}

Manifest go_back_to_newest(TrainerBase& trainer, const std::filesystem::path& folder) {
  const Ranks& ranks = trainer.ranks();
  ranks.set_activity("going back to a checkpoint");
  std::vector<std::filesystem::path> found;
  on_first_rank(ranks, [&] { found = candidates(folder); });
  RngStates random;
  const auto load = [&](const Checkpoint& checkpoint) {
    require_kept_states(trainer, checkpoint);
    random = load_run(trainer, checkpoint, "going back to " + checkpoint.path.filename().string());
  };
  const LoadedCheckpoint loaded = load_newest(ranks, found, load);
  if (!loaded.checkpoint) {
    throw CannotGoBack(
        "no checkpoint is saved yet. Lower checkpoint.save_every_n_steps, or set "
        "guards.on_nonfinite and guards.on_spike to skip or stop");
  }
  warn_of(loaded.warnings, ranks);
  trainer.go_back(loaded.checkpoint->manifest.state);
  restore_kept_state(trainer, *loaded.checkpoint);
  trainer.seed_rank();
  set_rng_states(random, trainer.device());
  return loaded.checkpoint->manifest;
}

}  // namespace phalanx
