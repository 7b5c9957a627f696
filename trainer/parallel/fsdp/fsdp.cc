// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/fsdp.h"

#include <ATen/core/grad_mode.h>

#include "trainer/api/clip.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/fsdp/fsdp_impl.h"

namespace phalanx {

using fsdp::FlatParameter;

namespace {

// The type and device of a norm: alike on all ranks, whichever gradients count on each.
at::TensorOptions options_of_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return at::TensorOptions();
  return gradients.front().options().dtype(type_of_norm(gradients));
}

fsdp::PassKind pass_kind(bool synchronize) {
  if (!at::GradMode::is_enabled()) return fsdp::PassKind::without_backward;
  return synchronize ? fsdp::PassKind::training : fsdp::PassKind::accumulating;
}

}  // namespace

FullyShardedDataParallel::~FullyShardedDataParallel() = default;

void FullyShardedDataParallel::before_forward(bool synchronize) {
  Impl& impl = *impl_;
  impl.synchronize = synchronize;
  impl.hooks->begin_pass();
  impl.schedule->begin_pass(pass_kind(synchronize));
  if (!impl.buffers.empty() && impl.buffers_may_differ) broadcast_tensors(impl.buffers, impl.ranks);
}

void FullyShardedDataParallel::after_forward() {
  Impl& impl = *impl_;
  impl.buffers_may_differ = at::GradMode::is_enabled() && impl.synchronize;
  if (!at::GradMode::is_enabled()) impl.schedule->end_pass();
}

void FullyShardedDataParallel::buffers_changed() { impl_->buffers_may_differ = true; }

std::vector<at::Tensor> FullyShardedDataParallel::common_buffers() const {
  return impl_->batch_statistics ? impl_->batch_statistics->buffers() : std::vector<at::Tensor>();
}

Loss FullyShardedDataParallel::run(c10::function_ref<Loss()> forward, bool synchronize) {
  before_forward(synchronize);
  const batch_norm::StatisticsScope statistics(impl_->statistics_ranks());
  Loss loss = forward();
  for (const auto& [name, value] : loss.parts()) impl_->hooks->watch_loss(value);
  after_forward();
  return loss;
}

std::vector<at::Tensor> FullyShardedDataParallel::run_tensors(
    c10::function_ref<std::vector<at::Tensor>()> forward, bool synchronize) {
  before_forward(synchronize);
  const batch_norm::StatisticsScope statistics(impl_->statistics_ranks());
  std::vector<at::Tensor> results = forward();
  for (const at::Tensor& result : results) impl_->hooks->watch_loss(result);
  after_forward();
  return results;
}

at::Tensor FullyShardedDataParallel::forward(const std::function<at::Tensor()>& function,
                                             bool synchronize) {
  return run([&] { return Loss(function()); }, synchronize).parts().front().second;
}

void FullyShardedDataParallel::use(c10::function_ref<void()> action) {
  impl_->hooks->begin_pass();
  impl_->schedule->begin_use();
  const batch_norm::StatisticsScope statistics(impl_->statistics_ranks());
  action();
  impl_->schedule->end_use();
}

std::optional<int64_t> FullyShardedDataParallel::backward_passes() const {
  return impl_->hooks->backward_passes();
}

GradientNorm FullyShardedDataParallel::measure_gradients(
    const std::vector<NamedParameter>& parameters) const {
  GradientNorm norm =
      phalanx::measure_gradients(parameters, [this](const NamedParameter& parameter) {
        return impl_->counts.at(parameter.tensor.unsafeGetTensorImpl());
      });
  const Ranks& group = impl_->groups.shard;
  if (group.is_single_rank()) return norm;
  const at::Tensor square = norm.total.to(options_of_norm(gradients_of(parameters))).square();
  group.all_reduce(square);
  norm.total = square.sqrt();
  return norm;
}

void FullyShardedDataParallel::summon_full_params(const std::function<void()>& look,
                                                  bool write_back) {
  const auto for_all = [&](auto action) {
    for (const auto& unit : impl_->units) {
      for (const auto& flat : unit->flats()) action(*flat);
    }
  };
  for_all([](FlatParameter& flat) { flat.begin_summon(); });
  try {
    look();
  } catch (...) {
    for_all([](FlatParameter& flat) { flat.end_summon(/*write_back=*/false); });
    throw;
  }
  for_all([&](FlatParameter& flat) { flat.end_summon(write_back); });
}

}  // namespace phalanx
