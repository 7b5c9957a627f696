#include "trainer/parallel/fsdp/flat_parameter.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx::sharding {
namespace {

std::vector<int64_t> sizes_of(const std::vector<NamedParameter>& parameters) {
  std::vector<int64_t> sizes;
  for (const auto& parameter : parameters) sizes.push_back(parameter.tensor.numel());
  return sizes;
}

}  // namespace

// What is called when autograd has added to a parameter's gradient. It must be held: the parameter
// knows it weakly.
struct FlatParameter::Hook {
  std::shared_ptr<torch::autograd::Node> accumulator;
  uintptr_t key;
};

FlatParameter::FlatParameter(std::vector<NamedParameter> parameters, const Groups& groups,
                             std::shared_ptr<BufferPool> pool)
    : parameters_(std::move(parameters)),
      groups_(groups),
      layout_(sizes_of(parameters_),
              static_cast<int64_t>(parameters_.front().tensor.element_size()), groups.mesh.shards),
      requires_grad_(parameters_.front().tensor.requires_grad()),
      pool_(std::move(pool)),
      flat_(layout_.size(), parameters_.front().tensor.options().requires_grad(false), pool_),
      touched_(parameters_.size()),
      used_(parameters_.size()) {
  const at::NoGradGuard no_grad;
  flat_.allocate();
  for (const Range& gap : layout_.gaps()) flat_.tensor().narrow(0, gap.begin, gap.size()).zero_();
  point_parameters_into_flat();
  shard_ = flat_.tensor();
  if (is_sharded()) {
    shard_ = at::empty({layout_.shard_size()}, flat_.tensor().options());
    keep_own_shard();
    free();
  }
  make_locals();
  if (requires_grad_) watch_gradients();
}

FlatParameter::~FlatParameter() {
  for (const auto& hook : hooks_) hook->accumulator->del_post_hook(hook->key);
}

// set_data keeps the tensor that the module holds, its place in autograd and its version counter:
// filling the buffer anew is no change of a value that autograd has saved.
void FlatParameter::point_parameters_into_flat() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& tensor = parameters_[i].tensor;
    const at::Tensor view = slot(flat_.tensor(), i);
    view.copy_(tensor);
    tensor.set_data(view);
  }
}

at::Tensor FlatParameter::slot(const at::Tensor& flat, std::size_t i) const {
  const Range place = layout_.place(i);
  return flat.narrow(0, place.begin, place.size()).view(parameters_[i].tensor.sizes());
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

void FlatParameter::watch_gradients() {
  using torch::autograd::variable_list;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[i].tensor);
    const uintptr_t key =
        accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [this, i](const variable_list& outputs, const variable_list&) {
              accumulate(i);
              return outputs;
            }));
    hooks_.push_back(std::make_shared<Hook>(Hook{std::move(accumulator), key}));
  }
}

// Moves a gradient into its place and gives its own memory up: what is held is one flat buffer.
void FlatParameter::accumulate(std::size_t i) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
  if (!gradient.defined()) return;
  if (!gradients_.defined()) {
    gradients_ = pool_->empty(layout_.size(), flat_.tensor().options());
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

void FlatParameter::start_gather() {
  if (!is_sharded() || flat_.is_allocated()) return;
  flat_.allocate();
  gather_ = groups_.shard.start_all_gather(flat_.tensor(), shard_);
}

void FlatParameter::finish_gather() {
  start_gather();
  if (!gather_) return;
  std::exchange(gather_, std::nullopt)->wait();
}

void FlatParameter::free() {
  if (!is_sharded()) return;
  if (gather_) finish_gather();  // the memory is in use until then
  flat_.free();
}

void FlatParameter::keep_own_shard() {
  const int64_t size = layout_.shard_size();
  shard_.copy_(flat_.tensor().narrow(0, groups_.mesh.shard_index * size, size));
}

void FlatParameter::adopt_whole() {
  const at::NoGradGuard no_grad;
  groups_.world.broadcast(flat_.tensor());
  if (is_sharded()) keep_own_shard();
}

void FlatParameter::zero_what_is_missing() {
  if (!gradients_.defined()) {
    gradients_ = pool_->empty(layout_.size(), flat_.tensor().options());
    gradients_.zero_();
    return;
  }
  for (const Range& gap : layout_.gaps()) gradients_.narrow(0, gap.begin, gap.size()).zero_();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (!touched_[i]) slot(gradients_, i).zero_();
  }
}

void FlatParameter::start_reduce() {
  const at::NoGradGuard no_grad;
  zero_what_is_missing();
  std::fill(touched_.begin(), touched_.end(), false);
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
  if (shard_gradient_.defined()) {
    shard_gradient_.add_(reduced_);
  } else {
    shard_gradient_ = std::move(reduced_);
  }
  reduced_.reset();
}

void FlatParameter::average() {
  const at::NoGradGuard no_grad;
  groups_.replicate.all_reduce(shard_gradient_);
  shard_gradient_.mul_(1.0 / static_cast<double>(groups_.mesh.world_size()));
}

void FlatParameter::hand_over(const std::function<bool(std::size_t)>& used) {
  for (std::size_t i = 0; i < locals_.size(); ++i) {
    at::Tensor& gradient = locals_[i].tensor.mutable_grad();
    gradient.reset();
    if (!shard_gradient_.defined() || !used(i)) continue;
    // Detached: torch::optim's zero_grad refuses gradients that are views.
    gradient = shard_gradient_
                   .narrow(0, layout_.offset_in_shard(i, groups_.mesh.shard_index),
                           locals_[i].tensor.numel())
                   .detach();
  }
  shard_gradient_.reset();
  std::fill(used_.begin(), used_.end(), false);
}

void FlatParameter::reset() {
  reduce_.reset();
  gradients_.reset();
  reduced_.reset();
  shard_gradient_.reset();
  std::fill(touched_.begin(), touched_.end(), false);
  std::fill(used_.begin(), used_.end(), false);
  for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  for (const auto& parameter : locals_) parameter.tensor.mutable_grad().reset();
  free();
}

}  // namespace phalanx::sharding
