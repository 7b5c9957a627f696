// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/flat_parameter.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "trainer/base/quietly.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {
namespace {

std::vector<int64_t> sizes_of(const std::vector<NamedParameter>& parameters) {
  std::vector<int64_t> sizes;
  for (const auto& parameter : parameters) sizes.push_back(parameter.tensor.numel());
  return sizes;
}

int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

}  // namespace

FlatParameter::FlatParameter(std::vector<NamedParameter> parameters, const Groups& groups,
                             std::shared_ptr<BufferPool> pool, const FlatOptions& options)
    : parameters_(std::move(parameters)),
      groups_(groups),
      types_(options, parameters_.front().tensor),
      layout_(sizes_of(parameters_), types_.whole_size(), groups.mesh.shards),
      requires_grad_(parameters_.front().tensor.requires_grad()),
      streams_(options.streams),
      flat_(layout_.size(), types_.whole(), pool),
      views_(parameters_, layout_),
      gradients_(parameters_, layout_, types_, std::move(pool)),
      shard_gradient_(groups_, types_, layout_.shard_size(), options.streams) {
  const at::NoGradGuard no_grad;
  if (shard_is_whole()) {
    flat_.allocate();
    shard_ = flat_.tensor();
  } else {
    views_.add_windows(types_.whole());
    shard_ = empty_shard(types_, layout_.shard_size());
  }
  shard_.zero_();  // gaps are sent too, and are added up
  views_.show_buffer(flat_.tensor());
  make_locals();
  gradients_.watch();
}

// The pool hands out what is gathered into, once computing is through with it: so that has to wait
// for a gather that nobody came to use.
FlatParameter::~FlatParameter() {
  if (streams_ && gather_) quietly([this] { gather_->wait(); });
}

bool FlatParameter::gathers_shards() const {
  return types_.storage == types_.compute && !types_.is_offloaded;
}

bool FlatParameter::shard_is_whole() const { return !is_sharded() && gathers_shards(); }

void FlatParameter::take(std::size_t i, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  const Range held = layout_.held(i, groups_.mesh.shard_index);
  shard_.narrow(0, layout_.offset_in_shard(i, groups_.mesh.shard_index), held.size())
      .copy_(values.detach().reshape({-1}).narrow(0, held.begin, held.size()));
}

at::Tensor FlatParameter::own_part(const at::Tensor& flat) const {
  return flat.narrow(0, groups_.mesh.shard_index * layout_.shard_size(), layout_.shard_size());
}

FlatMemory FlatParameter::memory() const {
  FlatMemory memory{.shard = bytes_of(shard_),
                    .whole = bytes_of(summoned_) + bytes_of(kept_),
                    .gradients = bytes_of(gradients_.buffer()) + shard_gradient_.whole_bytes(),
                    .shard_gradients = shard_gradient_.bytes()};
  if (!shard_is_whole() && flat_.is_allocated()) memory.whole += bytes_of(flat_.tensor());
  for (const NamedParameter& local : locals_) {
    // What has been handed over is part of one buffer, whose gaps are not worth a look.
    memory.shard_gradients += bytes_of(local.tensor.grad());
  }
  return memory;
}

void FlatParameter::make_locals() {
  const Mesh& mesh = groups_.mesh;
  std::vector<int64_t> replicas;
  for (int64_t r = 0; r < mesh.replicas; ++r) {
    replicas.push_back(mesh.rank_of(r, mesh.shard_index));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Range held = layout_.held(i, mesh.shard_index);
    const at::Tensor part =
        shard_.narrow(0, layout_.offset_in_shard(i, mesh.shard_index), held.size()).detach();
    part.set_requires_grad(requires_grad_);
    locals_.push_back({.name = parameters_[i].name,
                       .tensor = part,
                       .shard = ShardRange{.shape = parameters_[i].tensor.sizes().vec(),
                                           .begin = held.begin,
                                           .end = held.end,
                                           .replicas = replicas}});
  }
}

// A shard of another precision or device is brought into its place in the whole first, and sent
// from there.
void FlatParameter::start_gather() {
  if (flat_.is_allocated()) return;
  if (!streams_) return enqueue_gather();
  if (kept_since_) streams_->gather.wait_for(*std::exchange(kept_since_, std::nullopt));
  streams_->gather.run([this] { enqueue_gather(); });
}

void FlatParameter::enqueue_gather() {
  flat_.allocate();
  if (kept_.defined()) {
    gather_ = groups_.post_forward.start_all_gather(flat_.tensor(), kept_);
    return;
  }
  if (gathers_shards()) {
    gather_ = groups_.shard.start_all_gather(flat_.tensor(), shard_);
    return;
  }
  fill_own_part();
  if (is_sharded()) {
    gather_ = groups_.shard.start_all_gather(flat_.tensor(), own_part(flat_.tensor()));
  } else if (streams_) {
    const auto filled = std::make_shared<c10::Event>(end_of(streams_->gather.stream()));
    gather_ = Pending([filled] { compute_after(*filled); });
  }
}

void FlatParameter::fill_own_part() {
  const at::NoGradGuard no_grad;
  // The precision changes on the device: a copy that changes it on its way waits for the host.
  const bool changes_there = types_.is_offloaded && types_.storage != types_.compute;
  const at::Tensor from = changes_there ? shard_.to(types_.device, /*non_blocking=*/true) : shard_;
  own_part(flat_.tensor()).copy_(from, /*non_blocking=*/true);
}

void FlatParameter::finish_gather() {
  start_gather();
  if (gather_) {
    std::exchange(gather_, std::nullopt)->wait();
    kept_.reset();
  }
  views_.open(flat_.tensor());
}

void FlatParameter::free_after_forward() {
  const Ranks& neighbours = groups_.post_forward;
  if (neighbours.is_single_rank() || !is_whole()) return free();
  const at::NoGradGuard no_grad;
  const int64_t part = layout_.size() / neighbours.world_size();
  kept_ = flat_.tensor().narrow(0, neighbours.rank() * part, part).clone();
  if (streams_) kept_since_ = enqueued_so_far(types_.device);
  views_.close();
  flat_.free();
}

void FlatParameter::free() {
  if (shard_is_whole()) return;
  if (gather_) finish_gather();  // the memory is in use until then
  kept_.reset();
  kept_since_.reset();
  views_.close();
  flat_.free();
}

void FlatParameter::begin_summon() {
  free();  // what a forward pass without a backward one has left may be out of date
  if (streams_) streams_->gather.wait_for_computing();  // shards may have been updated
  if (gathers_shards()) {
    finish_gather();
    return;
  }
  const at::NoGradGuard no_grad;
  summoned_ = tensors::empty({layout_.size()}, types_.whole().dtype(types_.storage));
  own_part(summoned_).copy_(shard_);
  if (is_sharded()) groups_.shard.all_gather(summoned_, own_part(summoned_));
  views_.show(summoned_);
}

void FlatParameter::end_summon(bool write_back) {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = summoned_.defined() ? summoned_ : flat_.tensor();
  if (write_back) {
    groups_.world.broadcast(whole);
    if (!whole.is_same(shard_)) shard_.copy_(own_part(whole));
  }
  if (summoned_.defined()) {
    views_.show_buffer(flat_.tensor());
    summoned_.reset();
    gradients_.watch();
  }
  free();
}

void FlatParameter::publish(const std::function<bool(std::size_t)>& used) {
  const at::Tensor mean = shard_gradient_.take_mean();
  for (std::size_t i = 0; i < locals_.size(); ++i) {
    if (!mean.defined() || !used(i)) continue;
    at::Tensor& gradient = locals_[i].tensor.mutable_grad();
    // Detached: torch::optim's zero_grad refuses gradients that are views.
    const at::Tensor arrived = mean.narrow(0, layout_.offset_in_shard(i, groups_.mesh.shard_index),
                                           locals_[i].tensor.numel())
                                   .detach();
    if (gradient.defined()) {
      const at::NoGradGuard no_grad;
      gradient.add_(arrived);
    } else {
      gradient = arrived;
    }
  }
  gradients_.forget_uses();
}

void FlatParameter::reset() {
  shard_gradient_.reset();
  gradients_.reset();
  for (const auto& parameter : locals_) parameter.tensor.mutable_grad().reset();
  free();
}

}  // namespace phalanx::fsdp
