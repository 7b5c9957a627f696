// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/scattered_source.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/parallel/replicas/scattered_batch.h"

namespace phalanx {
namespace {

// Whether samples can be read by their numbers, as far as the first one tells.
bool can_read_again(const BatchSource& source) {
  if (source.samples_per_epoch() == 0) return true;
  const int64_t first = 0;
  try {
    return source.read_again({&first, 1}) != nullptr;
  } catch (const BrokenSampleError&) {  // whoever trains on it hears of it
    return true;
  }
}

}  // namespace

ScatteredSource::ScatteredSource(std::unique_ptr<BatchSource> whole, int64_t parts,
                                 std::optional<at::Device> gpu)
    : whole_(std::move(whole)), parts_(parts), gpu_(gpu) {
  if (can_read_again(*whole_)) return;
  throw UserError(
      "parallel.data_parallel scatters a micro-batch by reading its samples by their numbers, "
      "which "
      "the task's data cannot (KnownSamples::read_again): leave it out, or use strategy: ddp");
}

void ScatteredSource::start_epoch(int64_t epoch, int64_t consumed) {
  ahead_ = {};
  whole_->start_epoch(epoch, consumed);
}

void ScatteredSource::start_first(int64_t samples) {
  ahead_ = {};
  whole_->start_first(samples);
}

void ScatteredSource::start_spread(int64_t samples) {
  ahead_ = {};
  whole_->start_spread(samples);
}

std::unique_ptr<Batch> ScatteredSource::next() {
  std::unique_ptr<Batch> batch = ahead_.valid() ? ahead_.get() : cut_next();
  if (batch) {
    ahead_ = std::async(std::launch::async, [this] { return cut_next(); });
  }
  return batch;
}

std::unique_ptr<Batch> ScatteredSource::cut_next() {
  const std::unique_ptr<Batch> whole = whole_->next();
  if (!whole) return nullptr;
  std::vector<std::unique_ptr<Batch>> parts;
  std::span<const int64_t> rest = whole->sample_numbers;
  for (const int64_t size : chunk_sizes(static_cast<int64_t>(rest.size()), parts_)) {
    parts.push_back(part_of(rest.first(static_cast<size_t>(size))));
    rest = rest.subspan(static_cast<size_t>(size));
  }
  if (parts.empty()) {
    throw std::logic_error(
        "parallel.data_parallel: a micro-batch of the task's data does not say which samples it "
        "has (Batch::sample_numbers)");
  }
  auto scattered = std::make_unique<ScatteredBatch>(std::move(parts));
  scattered->counts = whole->counts;
  scattered->broken = std::move(whole->broken);
  return scattered;
}

std::unique_ptr<Batch> ScatteredSource::part_of(std::span<const int64_t> samples) const {
  auto part = whole_->read_again(samples);
  if (!part) throw std::logic_error("a source reads some samples by their numbers, and others not");
  if (gpu_) pin(*part, *gpu_);
  return part;
}

}  // namespace phalanx
