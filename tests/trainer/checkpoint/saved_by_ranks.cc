// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/checkpoint/saved_by_ranks.h"

#include <algorithm>
#include <stdexcept>

#include "tests/tensors.h"
#include "tests/trainer/checkpoint/sharded_run.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/verify.h"

namespace phalanx {
namespace {

/// The tensors of a small run of some ranks, whose values follow from the step.
struct SmallRun {
  std::vector<ShardedTensorView> model;
  std::vector<ShardedTensorView> optimizer;

  /// What one of the ranks holds after `step`; `elements`: of its larger tensors.
  SmallRun(int64_t step, int64_t elements, int64_t rank, int64_t ranks) {
    const auto same = [&](const char* name, const at::Tensor& values) {
      ShardedTensorView view = whole_tensor(name, values);
      for (int64_t other = 1; other < ranks; ++other) view.replicas.push_back(other);
      return view;
    };
    const auto first = static_cast<double>(step);
    model = {nth("cut", elements, rank, ranks), nth("other", elements, rank, ranks),
             same("half", tensors::full({9}, first, at::kBFloat16)),
             same("flags", tensors::arange(5).remainder(step + 1).eq(0)),
             same("empty", tensors::empty({0, 3}))};
    optimizer = {nth("cut.exp_avg", elements, rank, ranks),
                 same("cut.step", tensors::full({}, first, at::kDouble))};
    model[0].local.add_(100 * first);
    model[1].local.add_(200 * first);
    optimizer[0].local.add_(300 * first);
  }

  /// Whether all values are those of `other`.
  bool equals(const SmallRun& other) const {
    const auto equal = [](const auto& left, const auto& right) {
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (!left[i].local.equal(right[i].local)) return false;
      }
      return true;
    };
    return equal(model, other.model) && equal(optimizer, other.optimizer);
  }
};

}  // namespace

void SavedByRanks::save(int64_t elements, const PlanLimits& limits) {
  elements_ = elements;
  saved_ = std::make_unique<TemporaryFolder>();
  const auto outcome = in_ranks(kRanks, [&](World& world) {
    const int64_t rank = world.ranks().rank();
    for (int64_t step = 1; step <= kNewest; ++step) {
      const SmallRun run(step, elements, rank, kRanks);
      Snapshot snapshot;
      snapshot.state.step = step;
      snapshot.model = run.model;
      snapshot.optimizer = run.optimizer;
      snapshot.rng_states = {{"cpu", tensors::full({16}, 10 * step + rank, at::kByte)}};
      snapshot.metrics = {{"loss", 0.5}};
      save_checkpoint(saved_->path(), snapshot,
                      {.limits = limits, .host = rank % 2 == 0 ? "a" : "b"}, world.ranks());
    }
  });
  if (!outcome.message.empty()) throw std::runtime_error(outcome.message);
}

SavedByRanks::SavedByRanks() {
  std::filesystem::copy(saved_->path(), folder_.path(), std::filesystem::copy_options::recursive);
}

std::vector<std::string> SavedByRanks::files() const {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(saved_->path() / newest().filename())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

SavedByRanks::Found SavedByRanks::load() const {
  SmallRun run(/*step=*/9, elements_, 0, 1);
  at::Tensor random;
  const LoadedCheckpoint loaded =
      load_first_good({}, candidates(folder_.path()), [&](const Checkpoint& checkpoint) {
        random = load_checkpoint(checkpoint, run.model, run.optimizer).rng_states.at("cpu");
      });
  const int64_t step = loaded.checkpoint->manifest.state.step;
  const bool is_right = run.equals(SmallRun(step, elements_, 0, 1)) &&
                        random.equal(tensors::full({16}, 10 * step, at::kByte));
  return {.step = step, .is_right = is_right, .warnings = loaded.warnings};
}

std::string SavedByRanks::verdict() const {
  try {
    verify_checkpoint(newest());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace phalanx
