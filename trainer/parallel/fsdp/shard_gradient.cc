// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/shard_gradient.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {
namespace {

int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

}  // namespace

ShardGradient::ShardGradient(const Groups& groups, const FlatTypes& types, int64_t shard_size)
    : groups_(groups), types_(types), shard_size_(shard_size) {}

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

void ShardGradient::start_reduce(at::Tensor whole) {
  const at::NoGradGuard no_grad;
  if (const double divisor = divide_before_reduction(); divisor != 1) whole.div_(divisor);
  if (groups_.mesh.shards == 1) {
    reduced_ = std::move(whole);
    reduce_.emplace();
    return;
  }
  whole_ = std::move(whole);
  reduced_ = tensors::empty({shard_size_}, whole_.options());
  reduce_ = groups_.shard.start_reduce_scatter(reduced_, whole_);
}

void ShardGradient::finish_reduce() {
  const at::NoGradGuard no_grad;
  std::exchange(reduce_, std::nullopt)->wait();
  whole_.reset();
  at::Tensor arrived = take_reduced();
  if (sum_.defined()) {
    sum_.add_(arrived);
  } else {
    sum_ = std::move(arrived);
  }
}

// Where the shards are; into pinned memory where that is the host.
at::Tensor ShardGradient::take_reduced() {
  const at::Tensor reduced = std::exchange(reduced_, at::Tensor()).to(types_.shard_gradient);
  if (!types_.is_offloaded) return reduced;
  return empty_shard_gradient(types_, reduced.numel()).copy_(reduced);
}

void ShardGradient::start_average() {
  const at::NoGradGuard no_grad;
  average_.emplace();
  if (groups_.replicate.is_single_rank()) return;
  averaged_ = sum_.to(types_.device, types_.reduce);
  average_ = groups_.replicate.start_all_reduce(averaged_);
}

void ShardGradient::finish_average() {
  const at::NoGradGuard no_grad;
  std::exchange(average_, std::nullopt)->wait();
  if (averaged_.defined() && !averaged_.is_same(sum_)) sum_.copy_(averaged_);
  averaged_.reset();
  sum_.mul_(divide_before_reduction() / static_cast<double>(groups_.mesh.world_size()));
}

void ShardGradient::reset() {
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
