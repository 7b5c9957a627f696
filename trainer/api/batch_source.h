// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What the trainer asks a task's data for.
struct BatchRequest {
  int64_t batch_size = 1;  ///< Samples a rank and micro-batch.
  int64_t rank = 0;        ///< This rank.
  int64_t world_size = 1;  ///< Ranks in all.
  uint64_t seed = 0;       ///< The run's seed; the order of epoch e depends on (seed, e) alone.
  /// The GPU that the batches go to, if there is one: batches in pinned memory are copied there
  /// while the step before computes (`pin`).
  std::optional<at::Device> gpu = std::nullopt;
  /// In place of the files that the config names: what a command is given to evaluate or to make
  /// predictions of.
  std::vector<std::filesystem::path> files = {};
  /// Those that the data is dealt to: a task that calls the model until all are done asks them,
  /// where the model lies on several.
  Ranks ranks = {};
};

/// The micro-batches of one phase on one rank, epoch by epoch. The order of samples is a pure
/// function of (seed, epoch), dealt out by rank last, so that a resume at another world size or
/// after a crash sees the same samples.
class BatchSource : public KnownSamples {
 public:
  /// Samples of one epoch over all ranks, after drop_last.
  virtual int64_t samples_per_epoch() const = 0;

  /// Micro-batches of one whole epoch, as many on each rank, so that all take part in every step:
  /// one for which nothing is left gives some sample again, in a batch that does not count
  /// (Batch::counts).
  virtual int64_t batches_per_epoch() const = 0;

  /// Names the data: two sources with the same fingerprint hold the same samples. A resume
  /// refuses another one.
  virtual std::string fingerprint() const = 0;

  /// How many samples over all ranks may be left out as broken (Batch::broken) before the run ends.
  virtual int64_t max_broken() const { return 0; }

  /// Goes to the place in `epoch` where `consumed` samples over all ranks have been dealt out.
  virtual void start_epoch(int64_t epoch, int64_t consumed) = 0;

  /// Goes to the first `samples` samples in the data's own order, neither shuffled nor sorted by
  /// length; `next` deals out these alone, or all if there are fewer. By default the first epoch
  /// begins, for a source that has no other order.
  virtual void start_first(int64_t samples);

  /// Goes to `samples` samples at equal distances in the data's own order, so that each part of the
  /// data has its share; `next` deals out these alone, or all if there are fewer. By default the
  /// first ones, for a source that has no other order.
  virtual void start_spread(int64_t samples) { start_first(samples); }

  /// The next micro-batch, or nullptr at the end of the epoch. Rethrows what a worker met. It is
  /// asked for while the step before is computed, so it draws no numbers from LibTorch's
  /// generators.
  virtual std::unique_ptr<Batch> next() = 0;
};

}  // namespace phalanx
