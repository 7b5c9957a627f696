// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "trainer/api/batch_source.h"

namespace phalanx::tiny {

/// The data of another source, dealt out to ranks micro-batch by micro-batch: the tiny one alone
/// gives each rank all of its samples, so that a place in it, counted over all ranks, is not where
/// a rank is. The micro-batches of an epoch must be as many on each rank.
class Dealt : public BatchSource {
 public:
  Dealt(std::unique_ptr<BatchSource> whole, const BatchRequest& request)
      : whole_(std::move(whole)), rank_(request.rank), world_size_(request.world_size) {}

  int64_t samples_per_epoch() const override { return whole_->samples_per_epoch(); }
  int64_t batches_per_epoch() const override { return whole_->batches_per_epoch() / world_size_; }
  std::string fingerprint() const override { return whole_->fingerprint(); }
  void start_epoch(int64_t epoch, int64_t consumed) override {
    whole_->start_epoch(epoch, consumed);
  }

  std::unique_ptr<Batch> next() override {
    std::unique_ptr<Batch> own;
    for (int64_t rank = 0; rank < world_size_; ++rank) {
      auto batch = whole_->next();
      if (rank == rank_) own = std::move(batch);
    }
    return own;
  }

 private:
  std::unique_ptr<BatchSource> whole_;
  int64_t rank_;
  int64_t world_size_;
};

}  // namespace phalanx::tiny
