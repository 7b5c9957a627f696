// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/batch_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"
#include "trainer/host/memory_limit.h"

namespace phalanx {
namespace {

// What is computed of so few samples is far larger than they are: no sample is read for them.
constexpr int64_t kFewSamples = 4096;

constexpr double kMebibyte = 1024.0 * 1024.0;

// Bytes of the first sample, with its number; nothing where it cannot be read.
std::optional<double> bytes_a_sample(const Dataset& dataset, uint64_t seed) {
  const auto of_epoch = dataset.of_epoch(0, seed);
  constexpr std::array<int64_t, 1> kFirst{0};
  std::unique_ptr<Batch> batch;
  try {
    batch = (of_epoch ? *of_epoch : dataset).batch(kFirst);
  } catch (const BrokenSampleError&) {
    return std::nullopt;
  }
  double bytes = sizeof(int64_t);
  for (const at::Tensor* tensor : batch->tensors()) bytes += static_cast<double>(tensor->nbytes());
  return bytes;
}

}  // namespace

void require_room_for_batches(const Dataset& dataset, const BatchRequest& request) {
  const int64_t of_rank = (dataset.size() + request.world_size - 1) / request.world_size;
  const int64_t samples = std::min(request.batch_size, of_rank);
  if (samples <= kFewSamples) return;
  const auto limit = memory_limit(request.ranks.local_world_size());
  const auto each = bytes_a_sample(dataset, request.seed);
  if (!limit || !each) return;
  const double needed = *each * static_cast<double>(samples);
  const auto room = static_cast<double>(std::max<int64_t>(limit->bytes, 0));
  if (needed <= room) return;
  throw UserError(fmt::format(
      "training.batch_size {}: a micro-batch of {} samples, {:.0f} bytes each, takes {:.0f} MiB, "
      "and each rank may take {:.0f} MiB ({}); lower it, and for as many samples a step raise "
      "training.gradient_accumulation_steps",
      request.batch_size, samples, *each, needed / kMebibyte, room / kMebibyte, limit->source));
}

}  // namespace phalanx
