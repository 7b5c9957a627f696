// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/flat_parameter.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "trainer/memory/pinned_memory.h"

namespace phalanx::fsdp {
namespace {

std::vector<int64_t> sizes_of(const std::vector<NamedParameter>& parameters) {
  std::vector<int64_t> sizes;
  for (const auto& parameter : parameters) sizes.push_back(parameter.tensor.numel());
  return sizes;
}

at::ScalarType chosen(std::optional<at::ScalarType> dtype,
                      const std::vector<NamedParameter>& parameters) {
  const at::ScalarType own = parameters.front().tensor.scalar_type();
  return dtype && c10::isFloatingType(own) ? *dtype : own;
}

// What gradients leave a GPU for, of all units.
PinnedPool& gradient_memory() {
  static PinnedPool pool(cuda_pins());
  return pool;
}

}  // namespace

FlatParameter::FlatParameter(std::vector<NamedParameter> parameters, const Groups& groups,
                             std::shared_ptr<BufferPool> pool, const FlatOptions& options)
    : parameters_(std::move(parameters)),
      groups_(groups),
      options_(options),
      storage_(chosen(options.storage, parameters_)),
      compute_(options.compute && c10::isFloatingType(storage_) ? *options.compute : storage_),
      reduction_(options.reduce && c10::isFloatingType(storage_) ? *options.reduce : compute_),
      device_(options.device.value_or(parameters_.front().tensor.device())),
      layout_(sizes_of(parameters_), compute_size(), groups.mesh.shards),
      requires_grad_(parameters_.front().tensor.requires_grad()),
      pool_(std::move(pool)),
      flat_(layout_.size(), whole_options(), pool_),
      touched_(parameters_.size()),
      used_(parameters_.size()) {
  const at::NoGradGuard no_grad;
  if (shard_is_whole()) {
    flat_.allocate();
    shard_ = flat_.tensor();
    shard_.zero_();  // gaps are sent too, and are added up
  } else {
    make_windows();
    const bool leaves_device = shard_options().device() != device_;
    shard_ = leaves_device ? pinned_empty({layout_.shard_size()}, storage_).zero_()
                           : at::zeros({layout_.shard_size()}, shard_options());
  }
  if (is_offloaded()) transfers_.emplace(device_);
  point_parameters_back();
  make_locals();
  accumulators_.resize(requires_grad_ ? parameters_.size() : 0);
  for (std::size_t i = 0; i < accumulators_.size(); ++i) watch_gradient(i);
}

// What autograd or an author still holds of the parameters must not see memory that is gone.
FlatParameter::~FlatParameter() { close_windows(); }

at::TensorOptions FlatParameter::whole_options() const {
  return at::TensorOptions().dtype(compute_).device(device_);
}

at::TensorOptions FlatParameter::shard_options() const {
  const bool leaves_device = options_.offload && !device_.is_cpu();
  return at::TensorOptions().dtype(storage_).device(leaves_device ? at::kCPU : device_);
}

bool FlatParameter::shard_is_whole() const {
  return !is_sharded() && storage_ == compute_ && !(options_.offload && !device_.is_cpu());
}

void FlatParameter::take(std::size_t i, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  const Range held = layout_.held(i, groups_.mesh.shard_index);
  shard_.narrow(0, layout_.offset_in_shard(i, groups_.mesh.shard_index), held.size())
      .copy_(values.detach().reshape({-1}).narrow(0, held.begin, held.size()));
}

// set_data keeps the tensor that the module holds, its place in autograd and its version counter:
// filling the buffer anew is no change of a value that autograd has saved.
void FlatParameter::point_parameters_into(const at::Tensor& flat) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_data(slot(flat, i));
  }
}

void FlatParameter::point_parameters_back() {
  if (windows_.empty()) return point_parameters_into(flat_.tensor());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_data(windows_[i].tensor());
  }
}

void FlatParameter::make_windows() {
  for (const NamedParameter& parameter : parameters_) {
    windows_.emplace_back(
        parameter.tensor.sizes(), whole_options(),
        fmt::format("the parameter '{}' of a sharded model has no values now: it has them while "
                    "its unit runs (call the unit itself, unit(x), not its forward), and while "
                    "summon_full_params looks at them",
                    parameter.name));
  }
}

void FlatParameter::open_windows() {
  if (windows_.empty() || std::exchange(are_open_, true)) return;
  auto* const memory = static_cast<char*>(flat_.tensor().mutable_data_ptr());
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    windows_[i].open(memory + layout_.place(i).begin * compute_size());
  }
}

void FlatParameter::close_windows() {
  if (!std::exchange(are_open_, false)) return;
  for (const Window& window : windows_) window.close();
}

at::Tensor FlatParameter::slot(const at::Tensor& flat, std::size_t i) const {
  const Range place = layout_.place(i);
  return flat.narrow(0, place.begin, place.size()).view(parameters_[i].tensor.sizes());
}

at::Tensor FlatParameter::own_part(const at::Tensor& flat) const {
  return flat.narrow(0, groups_.mesh.shard_index * layout_.shard_size(), layout_.shard_size());
}

FlatMemory FlatParameter::memory() const {
  const auto bytes = [](const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  };
  FlatMemory memory{.shard = bytes(shard_),
                    .whole = bytes(summoned_),
                    .gradients = bytes(gradients_),
                    .shard_gradients = bytes(reduced_) + bytes(shard_gradient_)};
  if (!averaged_.is_same(shard_gradient_)) memory.shard_gradients += bytes(averaged_);
  if (!shard_is_whole() && flat_.is_allocated()) memory.whole += bytes(flat_.tensor());
  memory.whole += bytes(kept_);
  for (const NamedParameter& local : locals_) {
    // What has been handed over is part of one buffer, whose gaps are not worth a look.
    if (local.tensor.grad().defined()) memory.shard_gradients += bytes(local.tensor.grad());
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

// The graph may outlive this.
void FlatParameter::watch_gradient(std::size_t i) {
  using torch::autograd::variable_list;
  accumulators_[i] = torch::autograd::impl::grad_accumulator(parameters_[i].tensor);
  accumulators_[i]->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [self = std::weak_ptr(self_), i](const variable_list& outputs, const variable_list&) {
        if (const auto alive = self.lock()) (*alive)->accumulate(i);
        return outputs;
      }));
}

void FlatParameter::watch_gradient_anew(std::size_t i) {
  torch::autograd::impl::set_grad_accumulator(parameters_[i].tensor, {});
  watch_gradient(i);
}

void FlatParameter::part_uses() {
  using namespace torch::autograd::impl;
  if (reduction_ != compute_) return;
  for (std::size_t i = 0; i < accumulators_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    const bool is_used = accumulators_[i].use_count() > 1;
    if (!is_used || touched_[i] || !hooks(parameter).empty()) continue;
    watch_gradient_anew(i);
  }
}

// Moves a gradient into its place and gives its own memory up: what is held is one flat buffer.
void FlatParameter::accumulate(std::size_t i) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
  if (!gradient.defined()) return;
  if (!gradients_.defined()) {
    gradients_ = pool_->empty(layout_.size(), whole_options().dtype(reduction_));
  }
  const at::Tensor place = slot(gradients_, i);
  if (touched_[i]) {
    place.add_(gradient);
  } else {
    place.copy_(gradient);
  }
  touched_[i] = used_[i] = true;
  gradient.reset();
}

// A shard of another precision or device is brought into its place in the whole first, and sent
// from there.
void FlatParameter::start_gather() {
  if (flat_.is_allocated()) return;
  flat_.allocate();
  if (kept_.defined()) {
    gather_ = groups_.post_forward.start_all_gather(flat_.tensor(), kept_);
    return;
  }
  const bool is_ready = storage_ == compute_ && !is_offloaded();
  if (is_ready) {
    gather_ = groups_.shard.start_all_gather(flat_.tensor(), shard_);
    return;
  }
  const auto start = [&] {
    fill_own_part();
    if (is_sharded()) {
      gather_ = groups_.shard.start_all_gather(flat_.tensor(), own_part(flat_.tensor()));
    }
  };
  if (!transfers_) return start();
  transfers_->run(start);
  if (!is_sharded()) gather_.emplace();  // to be waited for all the same
}

void FlatParameter::fill_own_part() {
  const at::NoGradGuard no_grad;
  // The precision changes on the device: a copy that changes it on its way waits for the host.
  const bool changes_there = is_offloaded() && storage_ != compute_;
  const at::Tensor from = changes_there ? shard_.to(device_, /*non_blocking=*/true) : shard_;
  own_part(flat_.tensor()).copy_(from, /*non_blocking=*/true);
}

void FlatParameter::finish_gather() {
  start_gather();
  if (gather_) {
    std::exchange(gather_, std::nullopt)->wait();
    if (transfers_) transfers_->join();
    kept_.reset();
  }
  open_windows();
}

void FlatParameter::free_after_forward() {
  const Ranks& neighbours = groups_.post_forward;
  if (neighbours.is_single_rank() || !is_whole()) return free();
  const at::NoGradGuard no_grad;
  const int64_t part = layout_.size() / neighbours.world_size();
  kept_ = flat_.tensor().narrow(0, neighbours.rank() * part, part).clone();
  close_windows();
  flat_.free();
}

void FlatParameter::free() {
  if (shard_is_whole()) return;
  if (gather_) finish_gather();  // the memory is in use until then
  kept_.reset();
  close_windows();
  flat_.free();
}

void FlatParameter::begin_summon() {
  free();  // what a forward pass without a backward one has left may be out of date
  if (storage_ == compute_ && !is_offloaded()) {
    finish_gather();
    return;
  }
  const at::NoGradGuard no_grad;
  summoned_ = at::empty({layout_.size()}, shard_options().device(device_));
  own_part(summoned_).copy_(shard_);
  if (is_sharded()) groups_.shard.all_gather(summoned_, own_part(summoned_));
  point_parameters_into(summoned_);
}

void FlatParameter::end_summon(bool write_back) {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = summoned_.defined() ? summoned_ : flat_.tensor();
  if (write_back) {
    groups_.world.broadcast(whole);
    if (!whole.is_same(shard_)) shard_.copy_(own_part(whole));
  }
  if (summoned_.defined()) {
    point_parameters_back();
    summoned_.reset();
    // A tensor that was of another dtype or device a while may have forgotten who takes its
    // gradients.
    for (std::size_t i = 0; i < accumulators_.size(); ++i) watch_gradient_anew(i);
  }
  free();
}

void FlatParameter::zero_what_is_missing() {
  if (!gradients_.defined()) {
    gradients_ = pool_->empty(layout_.size(), whole_options().dtype(reduction_));
    gradients_.zero_();
    return;
  }
  for (const Range& gap : layout_.gaps()) gradients_.narrow(0, gap.begin, gap.size()).zero_();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (!touched_[i]) slot(gradients_, i).zero_();
  }
}

// float16 overflows where many ranks' gradients are added up: a part of the division by their
// number comes before, so that neither side of it leaves the range
// (torch/distributed/algorithms/_comm_hooks/default_hooks.py).
double FlatParameter::divide_before_reduction() const {
  if (reduction_ != at::kHalf) return 1;
  const auto ranks = groups_.mesh.world_size();
  int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return static_cast<double>(factor);
}

void FlatParameter::start_reduce() {
  const at::NoGradGuard no_grad;
  zero_what_is_missing();
  std::fill(touched_.begin(), touched_.end(), false);
  if (const double divisor = divide_before_reduction(); divisor != 1) gradients_.div_(divisor);
  if (!is_sharded()) {
    reduced_ = std::exchange(gradients_, at::Tensor());
    reduce_.emplace();
    return;
  }
  reduced_ = at::empty({layout_.shard_size()}, gradients_.options());
  reduce_ = groups_.shard.start_reduce_scatter(reduced_, gradients_);
}

void FlatParameter::finish_reduce() {
  const at::NoGradGuard no_grad;
  std::exchange(reduce_, std::nullopt)->wait();
  gradients_.reset();
  at::Tensor arrived = take_reduced();
  if (shard_gradient_.defined()) {
    shard_gradient_.add_(arrived);
  } else {
    shard_gradient_ = std::move(arrived);
  }
}

// Where the shards are; into pinned memory where that is the host.
at::Tensor FlatParameter::take_reduced() {
  const at::ScalarType kept = options_.keep_low_precision_grads ? reduction_ : storage_;
  const at::Tensor reduced = std::exchange(reduced_, at::Tensor()).to(kept);
  if (!is_offloaded()) return reduced;
  return gradient_memory().empty(reduced.sizes(), kept).copy_(reduced);
}

void FlatParameter::start_average() {
  const at::NoGradGuard no_grad;
  average_.emplace();
  if (groups_.replicate.is_single_rank()) return;
  averaged_ = shard_gradient_.to(device_, reduction_);
  average_ = groups_.replicate.start_all_reduce(averaged_);
}

void FlatParameter::finish_average() {
  const at::NoGradGuard no_grad;
  std::exchange(average_, std::nullopt)->wait();
  if (averaged_.defined() && !averaged_.is_same(shard_gradient_)) shard_gradient_.copy_(averaged_);
  averaged_.reset();
  shard_gradient_.mul_(divide_before_reduction() / static_cast<double>(groups_.mesh.world_size()));
}

void FlatParameter::publish(const std::function<bool(std::size_t)>& used) {
  for (std::size_t i = 0; i < locals_.size(); ++i) {
    if (!shard_gradient_.defined() || !used(i)) continue;
    at::Tensor& gradient = locals_[i].tensor.mutable_grad();
    // Detached: torch::optim's zero_grad refuses gradients that are views.
    const at::Tensor arrived = shard_gradient_
                                   .narrow(0, layout_.offset_in_shard(i, groups_.mesh.shard_index),
                                           locals_[i].tensor.numel())
                                   .detach();
    if (gradient.defined()) {
      const at::NoGradGuard no_grad;
      gradient.add_(arrived);
    } else {
      gradient = arrived;
    }
  }
  shard_gradient_.reset();
  std::fill(used_.begin(), used_.end(), false);
}

void FlatParameter::reset() {
  reduce_.reset();
  average_.reset();
  gradients_.reset();
  reduced_.reset();
  averaged_.reset();
  shard_gradient_.reset();
  std::fill(touched_.begin(), touched_.end(), false);
  std::fill(used_.begin(), used_.end(), false);
  for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  for (const auto& parameter : locals_) parameter.tensor.mutable_grad().reset();
  free();
}

}  // namespace phalanx::fsdp
