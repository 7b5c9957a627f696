// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/fsdp.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "trainer/api/clip.h"
#include "trainer/api/module_hook.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/deferred_values.h"
#include "trainer/parallel/fsdp/after_backward.h"
#include "trainer/parallel/fsdp/initial_values.h"
#include "trainer/parallel/fsdp/schedule.h"
#include "trainer/parallel/fsdp/unit_plan.h"
#include "trainer/ranks/collectives/agreement.h"
#include "trainer/ranks/collectives/hosts.h"

namespace phalanx {

using fsdp::FlatParameter;
using fsdp::Groups;
using fsdp::Mesh;
using fsdp::PlannedUnit;
using fsdp::Schedule;
using fsdp::ShardedUnit;

namespace {

// Of a norm, alike on all ranks, whatever counts on each.
at::TensorOptions options_of_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return at::TensorOptions();
  return gradients.front().options().dtype(type_of_norm(gradients));
}

// What decides which collectives a rank begins, and with what.
std::string describe_way(ShardingStrategy strategy, const Mesh& mesh, const FsdpOptions& options,
                         const ModelPlacement& placement) {
  return fmt::format("{} over {} x {} ranks, {}{}\n{}", to_string(strategy), mesh.replicas,
                     mesh.shards, placement.dtype ? c10::toString(*placement.dtype) : "as it is",
                     placement.cpu_offload ? ", offloaded" : "", text_of(options));
}

fsdp::PassKind pass_kind(bool synchronize) {
  if (!at::GradMode::is_enabled()) return fsdp::PassKind::without_backward;
  return synchronize ? fsdp::PassKind::training : fsdp::PassKind::accumulating;
}

}  // namespace

struct FullyShardedDataParallel::Impl : std::enable_shared_from_this<Impl> {
  Ranks ranks;
  ShardingStrategy strategy;
  AfterForward after;
  Groups groups;
  std::shared_ptr<fsdp::BufferPool> pool = std::make_shared<fsdp::BufferPool>(2);
  /// What lies outside of units is gathered once a step: between, others may use its memory.
  std::shared_ptr<fsdp::BufferPool> keeps_nothing = std::make_shared<fsdp::BufferPool>(0);
  std::vector<std::unique_ptr<ShardedUnit>> units;
  std::vector<at::Tensor> buffers;
  bool buffers_may_differ = true;
  bool synchronize = true;
  std::optional<at::ScalarType> compute, reduce;  ///< Where they are not the parameters' own.
  std::optional<at::ScalarType> input_dtype;  ///< What goes into the model and units is cast to it.
  /// By the module's tensor, and in the module's order.
  std::unordered_map<const at::TensorImpl*, NamedParameter> locals;
  std::vector<NamedParameter> local_parameters;
  /// Parts that count on this rank where a shard group's parts are added up.
  std::unordered_map<const at::TensorImpl*, bool> counts;
  std::unique_ptr<Schedule> schedule;

  void attach_hooks();
  void index_locals(torch::nn::Module& module);
  std::vector<at::Tensor> around_unit(ShardedUnit& unit, std::vector<at::Tensor> inputs,
                                      const ModuleForward& forward);
  void cast_inputs(std::vector<at::Tensor>& inputs) const;
  void watch_inputs(ShardedUnit& unit, std::vector<at::Tensor>& inputs);
  void place_buffers(torch::nn::Module& module, const ModelPlacement& placement,
                     std::optional<at::ScalarType> dtype);
  void add_unit(PlannedUnit planned, const fsdp::FlatOptions& options);
  void begin_pass();
  void before_backward(ShardedUnit* unit, int64_t of_pass);
  void watch_results(ShardedUnit& unit, std::vector<at::Tensor>& results);
  void watch_loss(const at::Tensor& loss);

  int64_t pass = 0;  ///< Number of the forward pass whose backward may come.
  /// What units have taken and given in this pass; not owned, only compared.
  std::unordered_set<const at::TensorImpl*> watched;
  bool end_is_queued = false;  ///< Autograd will call the end of this backward pass.
};

namespace {

// What a unit of the model calls around its forward.
template <class Impl>
class ShardingHook final : public ModuleHook {
 public:
  ShardingHook(std::weak_ptr<Impl> impl, ShardedUnit& unit) : impl_(std::move(impl)), unit_(unit) {}

  std::vector<at::Tensor> around(HookedModule&, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    return alive()->around_unit(unit_, std::move(inputs), forward);
  }

 private:
  std::shared_ptr<Impl> alive() const {
    if (auto impl = impl_.lock()) return impl;
    throw std::logic_error("a sharded model is used after its FullyShardedDataParallel has ended");
  }

  std::weak_ptr<Impl> impl_;
  ShardedUnit& unit_;
};

}  // namespace

void FullyShardedDataParallel::Impl::attach_hooks() {
  for (const auto& unit : units) {
    if (unit->unit() == nullptr) continue;
    // Around everything else: what is computed again in the backward pass finds the unit whole.
    unit->unit()->attach(std::make_shared<ShardingHook<Impl>>(weak_from_this(), *unit),
                         HookPlace::outermost);
  }
}

void FullyShardedDataParallel::Impl::index_locals(torch::nn::Module& module) {
  for (const auto& unit : units) {
    for (const auto& flat : unit->flats()) {
      const bool counts_here = flat->is_sharded() || groups.mesh.shard_index == 0;
      for (size_t i = 0; i < flat->parameters().size(); ++i) {
        const NamedParameter& local = flat->local(i);
        locals.emplace(flat->parameters()[i].tensor.unsafeGetTensorImpl(), local);
        counts.emplace(local.tensor.unsafeGetTensorImpl(), counts_here);
      }
    }
  }
  for (const NamedParameter& parameter : phalanx::local_parameters(module)) {
    local_parameters.push_back(locals.at(parameter.tensor.unsafeGetTensorImpl()));
  }
}

std::vector<at::Tensor> FullyShardedDataParallel::Impl::around_unit(ShardedUnit& unit,
                                                                    std::vector<at::Tensor> inputs,
                                                                    const ModuleForward& forward) {
  cast_inputs(inputs);
  if (is_recomputing()) {
    const bool was_gathered_for_it = schedule->before_recomputation(unit);
    std::vector<at::Tensor> results = forward(std::move(inputs));
    schedule->after_recomputation(unit, was_gathered_for_it);
    return results;
  }
  const bool with_backward = at::GradMode::is_enabled();
  schedule->before_forward(unit, with_backward);
  if (with_backward) watch_inputs(unit, inputs);
  std::vector<at::Tensor> results = forward(std::move(inputs));
  schedule->after_forward(unit, with_backward);
  if (with_backward) watch_results(unit, results);
  return results;
}

void FullyShardedDataParallel::Impl::cast_inputs(std::vector<at::Tensor>& inputs) const {
  if (!input_dtype) return;
  for (at::Tensor& input : inputs) {
    if (input.defined() && input.is_floating_point()) input = input.to(*input_dtype);
  }
}

void FullyShardedDataParallel::Impl::watch_inputs(ShardedUnit& unit,
                                                  std::vector<at::Tensor>& inputs) {
  // A call without such an input is never closed: the end of the backward pass takes care of it.
  ++unit.open_calls;
  fsdp::call_after_backward(inputs, [weak = weak_from_this(), &unit, of_pass = pass] {
    const auto impl = weak.lock();
    if (impl && of_pass == impl->pass) impl->schedule->after_backward(unit);
  });
  for (const at::Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) watched.insert(input.unsafeGetTensorImpl());
  }
}

// In place: the module's own tensors become the new ones.
void FullyShardedDataParallel::Impl::place_buffers(torch::nn::Module& module,
                                                   const ModelPlacement& placement,
                                                   std::optional<at::ScalarType> dtype) {
  if (!dtype) dtype = placement.dtype;
  for (at::Tensor& buffer : modules::buffers(module)) {
    const at::ScalarType wanted =
        dtype && buffer.is_floating_point() ? *dtype : buffer.scalar_type();
    buffer.set_data(buffer.to(placement.device.value_or(buffer.device()), wanted));
  }
}

// The first gradient of a call's results begins its backward: nothing in the call has one before.
void FullyShardedDataParallel::Impl::watch_results(ShardedUnit& unit,
                                                   std::vector<at::Tensor>& results) {
  const auto has_begun = std::make_shared<bool>(false);
  for (at::Tensor& result : results) {
    if (!result.defined() || !result.requires_grad()) continue;
    // What came in, or what a unit within has given, too: autograd would come to that one first,
    // and on a rank where something is done with it, to this one.
    if (watched.contains(result.unsafeGetTensorImpl())) result = result.alias();
    watched.insert(result.unsafeGetTensorImpl());
    result.register_hook([weak = weak_from_this(), &unit, of_pass = pass, has_begun](const auto&) {
      const auto impl = weak.lock();
      if (!impl || (std::exchange(*has_begun, true) && of_pass == impl->pass)) return;
      impl->before_backward(&unit, of_pass);
    });
  }
}

void FullyShardedDataParallel::Impl::watch_loss(const at::Tensor& loss) {
  if (!at::GradMode::is_enabled() || !loss.requires_grad()) return;
  loss.register_hook([weak = weak_from_this(), of_pass = pass](const at::Tensor&) {
    if (const auto impl = weak.lock()) impl->before_backward(nullptr, of_pass);
  });
}

void FullyShardedDataParallel::Impl::begin_pass() {
  ++pass;
  watched.clear();
  end_is_queued = false;  // where a backward pass has thrown, its end never came
}

void FullyShardedDataParallel::Impl::before_backward(ShardedUnit* unit, int64_t of_pass) {
  if (of_pass != pass) {
    throw std::logic_error(
        "gradients flow back through a forward pass of a sharded model that is over: such a pass "
        "has one backward pass, before the model is called for the next one (or to evaluate). Add "
        "up losses and call backward once, or give the model all inputs in one forward pass");
  }
  if (!std::exchange(end_is_queued, true)) {
    fsdp::call_at_end_of_backward([weak = weak_from_this()] {
      const auto impl = weak.lock();
      if (!impl) return;
      impl->begin_pass();
      impl->schedule->end_backward();
    });
  }
  schedule->before_backward(unit);
}

namespace {

std::optional<at::ScalarType> to_scalar_type(std::optional<LowPrecision> precision) {
  if (!precision) return std::nullopt;
  switch (*precision) {
    case LowPrecision::bfloat16:
      return at::kBFloat16;
    case LowPrecision::float16:
      return at::kHalf;
    case LowPrecision::float32:
      return at::kFloat;
  }
  throw std::logic_error("an unknown LowPrecision");
}

fsdp::FlatOptions flat_options(const FsdpMixedPrecision& precision,
                               const ModelPlacement& placement) {
  return {.storage = placement.dtype,
          .compute = to_scalar_type(precision.param_dtype),
          .reduce = to_scalar_type(precision.reduce_dtype),
          .device = placement.device,
          .offload = placement.cpu_offload,
          .keep_low_precision_grads = precision.keep_low_precision_grads};
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(torch::nn::Module& module, const Ranks& ranks,
                                                   ShardingStrategy strategy,
                                                   const FsdpOptions& options,
                                                   bool sync_module_states,
                                                   const ModelPlacement& placement)
    : impl_(std::make_shared<Impl>()) {
  const Mesh mesh = mesh_of(strategy, options, ranks.rank(), hosts_of(ranks));
  const AfterForward after = phalanx::after_forward(strategy, options, mesh.shards);
  auto planned = fsdp::plan_units(module, options);
  // Before anything is exchanged by them.
  require_agreement(ranks, {{"the way to shard", describe_way(strategy, mesh, options, placement)},
                            {"the sharded units", describe(planned)}});
  const DeferredInit* const deferred = placement.deferred_init.get();
  if (sync_module_states) {
    broadcast_present(module, ranks, options.broadcast_buffers, deferred);
  }
  Impl& impl = *impl_;
  impl.ranks = ranks;
  impl.strategy = strategy;
  impl.after = after;
  impl.groups = make_groups(ranks, mesh, after.kept_by);
  // Units take their tensors' memory away, so values are held before the first is made.
  fsdp::InitialValues values(planned, placement.deferred_init);
  const fsdp::FlatOptions flats = flat_options(options.mixed_precision, placement);
  for (auto& unit : planned) {
    if (unit.parameters.empty()) continue;
    impl.add_unit(std::move(unit), flats);
    values.fill(*impl.units.back());
  }
  values.draw(impl.units, sync_module_states ? &ranks : nullptr);
  // Drawing fills buffers too, where they are.
  impl.place_buffers(module, placement, to_scalar_type(options.mixed_precision.buffer_dtype));
  if (options.broadcast_buffers) impl.buffers = detached_buffers(module);
  impl.compute = flats.compute;
  impl.reduce = flats.reduce;
  if (options.mixed_precision.cast_forward_inputs) impl.input_dtype = flats.compute;
  impl.schedule =
      std::make_unique<Schedule>(impl.units, ranks,
                                 Schedule::Rules{.reshard_after_forward = after.gives_up,
                                                 .backward_prefetch = options.backward_prefetch,
                                                 .forward_prefetch = options.forward_prefetch,
                                                 .accumulated = options.accumulated_gradients,
                                                 .order_timeout = options.order_timeout});
  impl.index_locals(module);
  impl.attach_hooks();
}

void FullyShardedDataParallel::Impl::add_unit(PlannedUnit planned,
                                              const fsdp::FlatOptions& options) {
  const auto& buffers_from = planned.unit == nullptr ? keeps_nothing : pool;
  // What is ignored computes and is reduced as it is.
  const fsdp::FlatOptions plain{.storage = options.storage, .device = options.device};
  const bool is_whole = planned.is_whole;
  units.push_back(std::make_unique<ShardedUnit>(std::move(planned), units.size(),
                                                is_whole ? fsdp::whole_groups(ranks) : groups,
                                                buffers_from, is_whole ? plain : options));
}

FullyShardedDataParallel::~FullyShardedDataParallel() = default;

void FullyShardedDataParallel::before_forward(bool synchronize) {
  Impl& impl = *impl_;
  impl.synchronize = synchronize;
  impl.begin_pass();
  impl.schedule->begin_pass(pass_kind(synchronize));
  if (!impl.buffers.empty() && impl.buffers_may_differ) broadcast_tensors(impl.buffers, impl.ranks);
}

Loss FullyShardedDataParallel::after_forward(Loss loss) {
  Impl& impl = *impl_;
  impl.buffers_may_differ = at::GradMode::is_enabled() && impl.synchronize;
  for (const auto& [name, value] : loss.parts()) impl.watch_loss(value);
  if (!at::GradMode::is_enabled()) impl.schedule->end_pass();
  return loss;
}

NamedParameter FullyShardedDataParallel::local(const NamedParameter& parameter) const {
  return impl_->locals.at(parameter.tensor.unsafeGetTensorImpl());
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

void FullyShardedDataParallel::begin_use() {
  impl_->begin_pass();
  impl_->schedule->begin_use();
}
void FullyShardedDataParallel::end_use() { impl_->schedule->end_use(); }

std::optional<at::ScalarType> FullyShardedDataParallel::input_dtype() const {
  return impl_->input_dtype;
}

at::Tensor FullyShardedDataParallel::forward(const std::function<at::Tensor()>& function,
                                             bool synchronize) {
  before_forward(synchronize);
  return after_forward(Loss(function())).parts().front().second;
}

std::vector<NamedParameter> FullyShardedDataParallel::local_parameters() const {
  return impl_->local_parameters;
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

std::vector<MemoryUse> FullyShardedDataParallel::memory() const {
  MemoryUse shards{.what = "parameters, this rank's part", .bytes = 0};
  MemoryUse gradients{.what = "gradients, this rank's part", .bytes = 0};
  std::vector<MemoryUse> whole;
  for (const auto& unit : impl_->units) {
    const std::string name = unit->name().empty() ? "what is outside of units" : unit->name();
    for (const auto& flat : unit->flats()) {
      const fsdp::FlatMemory memory = flat->memory();
      shards.bytes += memory.shard;
      gradients.bytes += memory.shard_gradients;
      if (memory.whole > 0) whole.push_back({"parameters, gathered: " + name, memory.whole});
      if (memory.gradients > 0) {
        whole.push_back({"gradients, not reduced: " + name, memory.gradients});
      }
    }
  }
  std::vector<MemoryUse> uses{shards, gradients};
  uses.insert(uses.end(), whole.begin(), whole.end());
  uses.push_back({"kept for the next unit", static_cast<int64_t>(impl_->pool->idle_bytes())});
  return uses;
}

std::vector<ShardedUnitSummary> FullyShardedDataParallel::summary() const {
  std::vector<ShardedUnitSummary> units;
  for (const auto& unit : impl_->units) {
    ShardedUnitSummary summary{
        .name = unit->name(), .parameters = 0, .whole_bytes = 0, .resident_bytes = 0};
    for (const auto& flat : unit->flats()) {
      for (const auto& parameter : flat->parameters()) {
        summary.parameters += parameter.tensor.numel();
      }
      summary.whole_bytes += flat->layout().size() * flat->compute_size();
      summary.resident_bytes += flat->layout().shard_size() * flat->storage_size();
    }
    units.push_back(std::move(summary));
  }
  return units;
}

std::vector<std::string> FullyShardedDataParallel::description() const {
  std::vector<std::string> lines{fsdp::describe(impl_->strategy, impl_->groups.mesh)};
  if (const int64_t ranks = impl_->after.kept_by; ranks > 1) {
    lines.push_back(fmt::format("{} ranks keep a unit whole until its backward pass", ranks));
  }
  if (impl_->compute) {
    lines.push_back(fmt::format("computes in {}, reduces in {}", c10::toString(*impl_->compute),
                                c10::toString(impl_->reduce.value_or(*impl_->compute))));
  }
  std::ranges::move(fsdp::describe(summary()), std::back_inserter(lines));
  return lines;
}

std::unique_ptr<FullyShardedDataParallel> prepare_fsdp(
    torch::nn::Module& module, const Ranks& ranks, ShardingStrategy strategy,
    const FsdpOptions& options, bool sync_module_states, const ModelPlacement& placement) {
  return std::make_unique<FullyShardedDataParallel>(module, ranks, strategy, options,
                                                    sync_module_states, placement);
}

}  // namespace phalanx
