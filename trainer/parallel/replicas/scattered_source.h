// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/api/batch_source.h"

namespace phalanx {

/// The micro-batches of another source, each cut into a ScatteredBatch of at most `parts` parts:
/// the same samples in the same order, so that a step is that of one device. A part is read by the
/// numbers of its samples (KnownSamples::read_again), so that it is padded to its own longest one.
/// The next micro-batch is read in the background.
class ScatteredSource final : public BatchSource {
 public:
  /// `gpu`: any of the replicas'; parts lie in pinned memory, each to be copied to its replica's.
  /// `whole` need not pin. Throws UserError for a source that cannot read samples by their numbers.
  ScatteredSource(std::unique_ptr<BatchSource> whole, int64_t parts, std::optional<at::Device> gpu);

  int64_t samples_per_epoch() const override { return whole_->samples_per_epoch(); }
  int64_t batches_per_epoch() const override { return whole_->batches_per_epoch(); }
  std::string fingerprint() const override { return whole_->fingerprint(); }
  int64_t max_broken() const override { return whole_->max_broken(); }

  void start_epoch(int64_t epoch, int64_t consumed) override;
  void start_first(int64_t samples) override;
  void start_spread(int64_t samples) override;
  std::unique_ptr<Batch> next() override;

  std::string describe(int64_t sample, const std::string& problem) const override {
    return whole_->describe(sample, problem);
  }
  /// Not cut.
  std::unique_ptr<Batch> read_again(std::span<const int64_t> samples) const override {
    return whole_->read_again(samples);
  }

 private:
  std::unique_ptr<Batch> cut_next();
  std::unique_ptr<Batch> part_of(std::span<const int64_t> samples) const;

  const std::unique_ptr<BatchSource> whole_;
  const int64_t parts_;
  const std::optional<at::Device> gpu_;
  /// The next micro-batch, from the first `next` on. Last: its thread uses the members above.
  std::future<std::unique_ptr<Batch>> ahead_;
};

}  // namespace phalanx
