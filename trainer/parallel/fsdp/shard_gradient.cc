// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/shard_gradient.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "trainer/base/quietly.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {
namespace {

int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

}  // namespace

ShardGradient::ShardGradient(const Groups& groups, const FlatTypes& types, int64_t shard_size,
                             std::shared_ptr<const DeviceStreams> streams)
    : groups_(groups), types_(types), shard_size_(shard_size), streams_(std::move(streams)) {}

ShardGradient::~ShardGradient() { finish_what_is_under_way(); }

// On a device memory is handed out again at once, in the order of the stream that it was taken on:
// what a reduction of a pass that was given up, or what follows one, still reads and writes, others
// would get. Pinned memory has no such order: nothing may be on its way to it. On the host Gloo
// holds its tensors.
void ShardGradient::finish_what_is_under_way() noexcept {
  if (!streams_) return;
  for (auto* const pending : {&reduce_, &average_}) {
    if (!*pending) continue;
    quietly([&] { streams_->reduce.run([&] { (*pending)->wait(); }); });
  }
  if (whole_.defined() || reduced_.defined() || sum_.defined()) {
    quietly([&] { streams_->reduce.join(); });
  }
  if (types_.is_offloaded && sum_.defined()) quietly([&] { streams_->reduce.synchronize(); });
}

// On a device: on the reductions' stream, whatever is computed meanwhile.
template <class Enqueue>
void ShardGradient::beside_computing(const Enqueue& enqueue) const {
  if (!streams_) return enqueue();
  streams_->reduce.run(enqueue);
}

// float16 overflows where many ranks' gradients are added up: a part of the division by their
// number comes before, so that neither side of it leaves the range
// (torch/distributed/algorithms/_comm_hooks/default_hooks.py).
double ShardGradient::divide_before_reduction() const {
  if (types_.reduce != at::kHalf) return 1;
  const auto ranks = groups_.mesh.world_size();
  int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return static_cast<double>(factor);
}

// The first reduction of a step, where it arrives as the optimizer gets it.
bool ShardGradient::arrives_as_sum() const {
  return !sum_.defined() && !types_.is_offloaded && types_.reduce == types_.shard_gradient;
}

// What the optimizer gets is freed when it is through with it, on the stream that computes: so its
// memory is taken there, before the reductions' stream begins to wait. What only that stream uses
// is taken on it.
void ShardGradient::start_reduce(at::Tensor whole) {
  const at::NoGradGuard no_grad;
  whole_ = std::move(whole);
  if (groups_.mesh.shards > 1 && arrives_as_sum()) take_reduced();
  if (streams_) streams_->reduce.wait_for_computing();  // of these gradients
  beside_computing([&] { start_scatter(); });
}

void ShardGradient::take_reduced() { reduced_ = tensors::empty({shard_size_}, whole_.options()); }

void ShardGradient::start_scatter() {
  if (const double divisor = divide_before_reduction(); divisor != 1) whole_.div_(divisor);
  if (groups_.mesh.shards == 1) {
    // It was taken where gradients are computed. Unless the optimizer gets it, it may be given back
    // before this stream is done.
    if (streams_ && !arrives_as_sum()) whole_.record_stream(streams_->reduce.stream());
    reduced_ = std::exchange(whole_, at::Tensor());
    reduce_.emplace();
    return;
  }
  if (!reduced_.defined()) take_reduced();
  reduce_ = groups_.shard.start_reduce_scatter(reduced_, whole_);
}

// On a device what is computed from now on waits for the reduction, whose memory it may take over:
// so at most two units' gradients are there at a time (as in torch's fully_shard).
void ShardGradient::finish_reduce() {
  const at::NoGradGuard no_grad;
  std::exchange(reduce_, std::nullopt)->wait();
  whole_.reset();
  const bool is_first = !sum_.defined();
  if (is_first && !arrives_as_sum()) sum_ = empty_shard_gradient(types_, shard_size_);
  if (streams_) streams_->reduce.wait_for_computing();  // and so for the reduction
  beside_computing([&] { add_reduced(is_first); });
}

// Where the shards are. On its way between a device and pinned memory nothing waits for the host.
void ShardGradient::add_reduced(bool is_first) {
  const at::Tensor reduced = std::exchange(reduced_, at::Tensor());
  if (!sum_.defined()) {
    sum_ = reduced;
  } else if (types_.is_offloaded) {
    const at::Tensor arrived = reduced.to(types_.shard_gradient);
    if (!is_first) arrived.add_(sum_.to(types_.device, /*non_blocking=*/true));
    sum_.copy_(arrived, /*non_blocking=*/true);
  } else if (is_first) {
    sum_.copy_(reduced);
  } else {
    sum_.add_(reduced.to(types_.shard_gradient));
  }
}

void ShardGradient::start_average() {
  const at::NoGradGuard no_grad;
  average_.emplace();
  if (groups_.replicate.is_single_rank()) return;
  beside_computing([&] {
    averaged_ = sum_.to(types_.device, /*non_blocking=*/types_.is_offloaded).to(types_.reduce);
    average_ = groups_.replicate.start_all_reduce(averaged_);
  });
}

void ShardGradient::finish_average() {
  const at::NoGradGuard no_grad;
  Pending average = *std::exchange(average_, std::nullopt);
  beside_computing([&] {
    average.wait();
    if (averaged_.defined() && !averaged_.is_same(sum_)) {
      // The precision changes on the device: a copy that changes it on its way waits for the host.
      if (types_.is_offloaded) averaged_ = averaged_.to(types_.shard_gradient);
      sum_.copy_(averaged_, /*non_blocking=*/types_.is_offloaded);
    }
    averaged_.reset();
    if (!types_.is_offloaded) scale();
  });
}

void ShardGradient::scale() {
  sum_.mul_(divide_before_reduction() / static_cast<double>(groups_.mesh.world_size()));
}

at::Tensor ShardGradient::take_mean() {
  const at::NoGradGuard no_grad;
  if (sum_.defined() && types_.is_offloaded) scale();
  return std::exchange(sum_, at::Tensor());
}

void ShardGradient::reset() {
  finish_what_is_under_way();
  reduce_.reset();
  average_.reset();
  whole_.reset();
  reduced_.reset();
  averaged_.reset();
  sum_.reset();
}

int64_t ShardGradient::whole_bytes() const { return bytes_of(whole_); }

int64_t ShardGradient::bytes() const {
  const bool has_copy = !averaged_.is_same(sum_);
  return bytes_of(reduced_) + bytes_of(sum_) + (has_copy ? bytes_of(averaged_) : 0);
}

}  // namespace phalanx::fsdp
