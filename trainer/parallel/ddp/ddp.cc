// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/ddp.h"

#include <ATen/core/grad_mode.h>

#include <numeric>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <unordered_map>
#include <utility>

#include "trainer/api/model_base.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/ddp/ddp_impl.h"
#include "trainer/parallel/ddp/reducer_setup.h"
#include "trainer/parallel/ddp/unused_parameters.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {

DistributedDataParallel::DistributedDataParallel(torch::nn::Module& module, const Ranks& ranks,
                                                 const DdpOptions& options, bool sync_module_states,
                                                 std::shared_ptr<CommHook> hook,
                                                 bool sync_batchnorm)
    : impl_(std::make_unique<Impl>()) {
  impl_->ranks = ranks;
  impl_->options = options;
  impl_->hook = std::move(hook);
  if (!impl_->hook && options.comm_hook) {
    impl_->hook = Registry<CommHook>::instance().make(*options.comm_hook);
  }
  auto parameters = reduced_parameters(module);
  if (sync_module_states) {
    c10d::verify_params_across_processes(process_group(ranks), parameters.tensors, std::nullopt);
    broadcast_states(module, ranks, options.broadcast_buffers);
  }
  if (options.broadcast_buffers) impl_->buffers = detached_buffers(module);
  if (sync_batchnorm) impl_->batch_statistics.emplace(module, ranks);
  impl_->states = detached_states(module, options.broadcast_buffers);
  std::vector<NamedParameter> named;
  for (size_t i = 0; i < parameters.tensors.size(); ++i) {
    impl_->names.push_back(parameters.names.at(i));
    named.push_back({.name = impl_->names.back(), .tensor = parameters.tensors[i]});
  }
  if (impl_->hook) impl_->hook->bind(named, ranks);
  impl_->shared->reducer = make_reducer(std::move(parameters), ranks, options);
  impl_->passes = std::make_shared<BackwardPasses>(
      impl_->shared->reducer, BackwardPasses::Rules{.finds_unused = options.find_unused_parameters,
                                                    .is_static = options.static_graph,
                                                    .names = impl_->names});
  // Nobody reads what it would log, and set_construction_data_and_log takes every backend of the
  // type Gloo for a ProcessGroupGloo, which one that wraps it is not.
  impl_->shared->logger = std::make_shared<c10d::Logger>(impl_->shared->reducer);
  impl_->reducer().set_logger(impl_->shared->logger);
  impl_->shared->static_graph = options.static_graph;
  if (options.static_graph) {
    impl_->reducer().set_static_graph();
    impl_->shared->logger->set_static_graph();
  }
  if (impl_->hook) impl_->reducer().register_comm_hook(impl_->hook->make(ranks));
}

DistributedDataParallel::~DistributedDataParallel() = default;

NamedParameter DistributedDataParallel::local(const NamedParameter& parameter) const {
  if (impl_->differs()) return parameter;
  NamedParameter replica = parameter;
  std::vector<int64_t> all(static_cast<std::size_t>(impl_->ranks.world_size()));
  std::iota(all.begin(), all.end(), 0);
  replica.shard = ShardRange{.shape = parameter.tensor.sizes().vec(),
                             .begin = 0,
                             .end = parameter.tensor.numel(),
                             .replicas = std::move(all)};
  return replica;
}

std::vector<std::string> DistributedDataParallel::reduction_order() const {
  std::vector<std::string> names;
  for (const int64_t parameter : impl_->reducer().order()) {
    names.push_back(impl_->names[static_cast<size_t>(parameter)]);
  }
  return names;
}

void DistributedDataParallel::follow_reduction_order(const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < impl_->names.size(); ++i) places[impl_->names[i]] = i;
  std::vector<size_t> order;
  for (const std::string& name : names) {
    const auto found = places.find(name);
    if (found == places.end()) return;
    order.push_back(found->second);
    places.erase(found);
  }
  impl_->reducer().follow(order);
}

void DistributedDataParallel::buffers_changed() { impl_->buffers_may_differ = true; }

void DistributedDataParallel::before_forward(bool synchronize) {
  Impl& impl = *impl_;
  const bool trains = at::GradMode::is_enabled();
  impl.synchronize = synchronize;
  if (impl.options.check_reduction) {
    naming_unused_parameters(impl.names, impl.options, [&] { impl.reducer().check_finalized(); });
  }
  if (trains && synchronize) impl.reducer().prepare_for_forward();
  if (impl.uneven && !trains) return;
  if (impl.uneven) impl.uneven->has_inputs();
  if (trains) {
    naming_unused_parameters(impl.names, impl.options, [&] { impl.reducer().use_order(); });
  }
  if (!impl.buffers.empty() && impl.buffers_may_differ) {
    // Rank 0 may have no inputs left, and buffers of an earlier pass.
    broadcast_tensors(impl.buffers, impl.ranks, impl.uneven ? impl.uneven->common_rank(true) : 0);
  }
  if (impl.uneven) impl.uneven->synchronizes(synchronize);
}

std::vector<at::Tensor> DistributedDataParallel::after_forward(std::vector<at::Tensor> outputs) {
  Impl& impl = *impl_;
  const bool trains = at::GradMode::is_enabled();
  if (trains || !impl.uneven) impl.buffers_may_differ = trains && impl.synchronize;
  if (trains && impl.passes->begin(impl.synchronize)) {
    const bool searches = impl.options.find_unused_parameters && !impl.options.static_graph;
    impl.reducer().prepare_for_backward(searches ? outputs : std::vector<at::Tensor>{});
  }
  if (impl.joins_outputs()) join_outputs(outputs, impl.shared);
  if (trains) impl.passes->watch(outputs);
  return outputs;
}

void DistributedDataParallel::use(c10::function_ref<void()> action) {
  const batch_norm::StatisticsScope statistics(impl_->statistics_ranks());
  action();
}

std::vector<at::Tensor> DistributedDataParallel::common_buffers() const {
  return impl_->batch_statistics ? impl_->batch_statistics->buffers() : std::vector<at::Tensor>();
}

std::optional<int64_t> DistributedDataParallel::backward_passes() const {
  return impl_->passes->count();
}

CommHook* DistributedDataParallel::comm_hook() const { return impl_->hook.get(); }

void DistributedDataParallel::after_update() {
  if (impl_->hook) impl_->hook->after_update();
}

GradientNorm DistributedDataParallel::measure_gradients(
    const std::vector<NamedParameter>& parameters) const {
  GradientNorm norm = ParallelEngine::measure_gradients(parameters);
  if (!impl_->differs()) return norm;
  // A maximum of backends may pass NaN over.
  const at::Tensor all = norm.total.new_empty({impl_->ranks.world_size()});
  impl_->ranks.all_gather(all, norm.total.reshape({1}));
  norm.total = all.max();
  return norm;
}

Loss DistributedDataParallel::run(c10::function_ref<Loss()> forward, bool synchronize) {
  before_forward(synchronize);
  const batch_norm::StatisticsScope statistics(impl_->statistics_ranks());
  Loss loss = forward();
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : loss.parts()) values.push_back(value);
  return std::move(loss).with_values(after_forward(std::move(values)));
}

std::vector<at::Tensor> DistributedDataParallel::run_tensors(
    c10::function_ref<std::vector<at::Tensor>()> forward, bool synchronize) {
  before_forward(synchronize);
  const batch_norm::StatisticsScope statistics(impl_->statistics_ranks());
  return after_forward(forward());
}

at::Tensor DistributedDataParallel::forward(const std::function<at::Tensor()>& function,
                                            bool synchronize) {
  return run_tensors([&] { return std::vector<at::Tensor>{function()}; }, synchronize).front();
}

std::unique_ptr<DistributedDataParallel> prepare_ddp(torch::nn::Module& module, const Ranks& ranks,
                                                     const DdpOptions& options,
                                                     bool sync_module_states, bool sync_batchnorm) {
  return std::make_unique<DistributedDataParallel>(module, ranks, options, sync_module_states,
                                                   /*hook=*/nullptr, sync_batchnorm);
}

}  // namespace phalanx
