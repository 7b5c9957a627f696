// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/ddp.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <unordered_map>
#include <utility>

#include "trainer/api/model_base.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/parallel/batch_norm/module_batch_norm.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/ddp/backward_passes.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/ddp/ordered_reducer.h"
#include "trainer/parallel/ddp/uneven_passes.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {
namespace {

constexpr int64_t kMebibyte = 1024 * 1024;

// The reducer, and whether a static graph's first backward has been told to reduce at its end.
// Shared with autograd's graph, which may outlive the wrapper.
struct SharedReducer : torch::CustomClassHolder {
  std::shared_ptr<OrderedReducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  // the reducer asks it when other parameters are unused
  bool static_graph = false;
  bool delay_enqueued = false;
};

// Joins all outputs into one node of the graph, so that those the loss does not use reach the
// reducer too, as undefined gradients (Python's _DDPSink).
struct JoinOutputs : torch::autograd::Function<JoinOutputs> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const c10::intrusive_ptr<SharedReducer>& shared,
                                                at::TensorList inputs) {
    context->set_materialize_grads(false);
    context->saved_data["shared"] = c10::IValue::make_capsule(shared);
    torch::autograd::variable_list outputs;
    for (const auto& input : inputs) outputs.push_back(input.clone());
    return outputs;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto shared = c10::static_intrusive_pointer_cast<SharedReducer>(
        context->saved_data["shared"].toCapsule());
    if (shared->static_graph && !std::exchange(shared->delay_enqueued, true)) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = shared->reducer] { reducer->delay_all_reduce(); });
    }
    gradients.insert(gradients.begin(), at::Tensor());  // of `shared`
    return gradients;
  }
};

struct ReducedParameters {
  std::vector<at::Tensor> tensors;
  std::unordered_map<size_t, std::string> names;
};

// A parameter that several modules share counts once.
ReducedParameters reduced_parameters(torch::nn::Module& module) {
  ReducedParameters parameters;
  for (NamedParameter& parameter : local_parameters(module)) {
    if (!parameter.tensor.requires_grad()) continue;
    parameters.names[parameters.tensors.size()] = std::move(parameter.name);
    parameters.tensors.push_back(std::move(parameter.tensor));
  }
  if (parameters.tensors.empty()) {
    throw std::logic_error("DDP needs a module with a parameter that requires a gradient");
  }
  return parameters;
}

std::shared_ptr<OrderedReducer> make_reducer(ReducedParameters parameters, const Ranks& ranks,
                                             const DdpOptions& options) {
  const int64_t cap = options.bucket_cap_mb
                          ? static_cast<int64_t>(*options.bucket_cap_mb * kMebibyte)
                          : static_cast<int64_t>(c10d::kDefaultBucketBytesCap);
  const int64_t first_cap =
      options.bucket_cap_mb ? cap : static_cast<int64_t>(c10d::kDefaultFirstBucketBytes);
  // Buckets are made anew in the order of the first backward, but where unused parameters are
  // looked for; until then one bucket serves (Python's _ddp_init_helper says why).
  std::vector<size_t> limits{static_cast<size_t>(std::numeric_limits<int64_t>::max())};
  if (options.find_unused_parameters && !options.static_graph) {
    limits = {static_cast<size_t>(cap)};
    if (!options.bucket_cap_mb) limits.insert(limits.begin(), static_cast<size_t>(first_cap));
  }
  const std::vector<bool> sparse(parameters.tensors.size(), false);
  auto buckets =
      std::get<0>(c10d::compute_bucket_assignment_by_size(parameters.tensors, limits, sparse));
  std::reverse(buckets.begin(), buckets.end());  // gradients come in about that order
  return std::make_shared<OrderedReducer>(
      std::move(parameters.tensors), std::move(buckets), process_group(ranks), sparse, cap,
      options.find_unused_parameters, options.gradient_as_bucket_view, std::move(parameters.names),
      first_cap, /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<int64_t>{});
}

}  // namespace

struct DistributedDataParallel::Impl {
  Ranks ranks;
  DdpOptions options;
  std::vector<at::Tensor> buffers;
  std::optional<batch_norm::ModuleBatchNorm> batch_statistics;  ///< With sync_batchnorm.
  std::vector<at::Tensor> states;  ///< Parameters, and the buffers that are broadcast.
  std::vector<std::string> names;  ///< The names of the reducer's parameters.
  c10::intrusive_ptr<SharedReducer> shared = c10::make_intrusive<SharedReducer>();
  std::shared_ptr<CommHook> hook;
  std::shared_ptr<BackwardPasses> passes;
  std::optional<UnevenPasses> uneven;  ///< In `join`.
  bool synchronize = true;
  bool buffers_may_differ = true;  // since the last backward that reduced

  OrderedReducer& reducer() const { return *shared->reducer; }
  std::optional<Ranks> statistics_ranks() const {
    return batch_statistics ? batch_statistics->ranks() : std::nullopt;
  }
  // Whether ranks may have other parameters.
  bool differs() const { return hook && hook->group(); }
  bool joins_outputs() const {
    return options.static_graph ? !shared->delay_enqueued : options.find_unused_parameters;
  }
};

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
  impl_->shared->logger = std::make_shared<c10d::Logger>(impl_->shared->reducer);
  impl_->reducer().set_logger(impl_->shared->logger);
  impl_->shared->logger->set_construction_data_and_log(
      modules::class_name(module),
      /*device_ids=*/{}, /*output_device=*/-1, options.broadcast_buffers,
      /*has_sync_bn=*/sync_batchnorm, options.static_graph);
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
  if (impl.options.check_reduction) impl.reducer().check_finalized();
  if (trains && synchronize) impl.reducer().prepare_for_forward();
  if (impl.uneven && !trains) return;
  if (impl.uneven) impl.uneven->has_inputs();
  if (trains) impl.reducer().use_order();
  if (!impl.buffers.empty() && impl.buffers_may_differ) {
    // Rank 0 may have no inputs left, and buffers of an earlier pass.
    broadcast_tensors(impl.buffers, impl.ranks, impl.uneven ? impl.uneven->common_rank(true) : 0);
  }
  if (impl.uneven) impl.uneven->synchronizes(synchronize);
}

void DistributedDataParallel::join(const std::function<void()>& loop, const UnevenInputs& inputs) {
  if (!inputs.enable) return loop();
  Impl& impl = *impl_;
  if (impl.uneven) throw std::logic_error("a join of uneven inputs within another one");
  if (impl.batch_statistics && !inputs.throw_on_early_termination) {
    throw std::logic_error(
        "a join of uneven inputs with sync_batchnorm: a rank without inputs has no batch "
        "statistics to take part with; set throw_on_early_termination");
  }
  const CommHook* const hook = comm_hook();
  if (hook != nullptr && hook->averages_parameters() && !inputs.throw_on_early_termination) {
    throw std::logic_error(
        "a join of uneven inputs with a comm hook that averages parameters: a rank without inputs "
        "makes no updates to average after; set throw_on_early_termination");
  }
  impl.uneven.emplace(impl.reducer(), impl.ranks, impl.states.front().device(), inputs);
  try {
    loop();
    shadow_passes();
  } catch (...) {
    impl.uneven.reset();
    throw;
  }
  impl.uneven.reset();
}

void DistributedDataParallel::shadow_passes() {
  Impl& impl = *impl_;
  const at::NoGradGuard no_grad;
  bool is_last = true;
  while (impl.uneven->ranks_with_inputs() > 0) {
    is_last = false;
    impl.reducer().use_order();
    if (!impl.buffers.empty() && impl.buffers_may_differ) {
      broadcast_tensors(impl.buffers, impl.ranks, impl.uneven->common_rank(false));
    }
    impl.buffers_may_differ = impl.uneven->synchronizes(false);
    if (!impl.buffers_may_differ) continue;
    impl.reducer().reduce_zeros(impl.options.find_unused_parameters && !impl.options.static_graph);
  }
  broadcast_tensors(impl.states, impl.ranks, impl.uneven->common_rank(is_last));
}

std::vector<at::Tensor> DistributedDataParallel::after_forward(std::vector<at::Tensor> outputs) {
  Impl& impl = *impl_;
  const bool trains = at::GradMode::is_enabled();
  if (trains || !impl.uneven) impl.buffers_may_differ = trains && impl.synchronize;
  if (trains && impl.passes->begin(impl.synchronize)) {
    const bool searches = impl.options.find_unused_parameters && !impl.options.static_graph;
    impl.reducer().prepare_for_backward(searches ? outputs : std::vector<at::Tensor>{});
  }
  if (impl.joins_outputs()) make_one_node(outputs);
  if (trains) impl.passes->watch(outputs);
  return outputs;
}

void DistributedDataParallel::make_one_node(std::vector<at::Tensor>& outputs) const {
  // Outputs that need no gradient stay out of the graph (pytorch issue 60733).
  torch::autograd::variable_list joined;
  for (const auto& output : outputs) {
    if (output.grad_fn()) joined.push_back(output);
  }
  if (joined.empty()) return;
  joined = JoinOutputs::apply(impl_->shared, at::TensorList(joined));
  auto next = joined.begin();
  for (auto& output : outputs) {
    if (output.grad_fn()) output = *next++;
  }
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
