// SPDX-License-Identifier: Apache-2.0
// How an engine comes to be.

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/deferred_values.h"
#include "trainer/parallel/fsdp/fsdp_impl.h"
#include "trainer/parallel/fsdp/initial_values.h"
#include "trainer/parallel/fsdp/unit_plan.h"
#include "trainer/ranks/collectives/agreement.h"
#include "trainer/ranks/collectives/hosts.h"

namespace phalanx {

using fsdp::Mesh;
using fsdp::PlannedUnit;
using fsdp::Schedule;
using fsdp::ShardedUnit;

namespace {

// What decides which collectives a rank begins, and with what.
std::string describe_way(ShardingStrategy strategy, const Mesh& mesh, const FsdpOptions& options,
                         const ModelPlacement& placement, bool sync_batchnorm) {
  return fmt::format("{} over {} x {} ranks, {}{}{}\n{}", to_string(strategy), mesh.replicas,
                     mesh.shards, placement.dtype ? c10::toString(*placement.dtype) : "as it is",
                     placement.cpu_offload ? ", offloaded" : "",
                     sync_batchnorm ? ", batch statistics of all ranks" : "", text_of(options));
}

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

// Where the parameters are; a model without any computes on the host.
at::Device device_of(const std::vector<PlannedUnit>& units) {
  for (const PlannedUnit& unit : units) {
    if (!unit.parameters.empty()) return unit.parameters.front().tensor.device();
  }
  return at::kCPU;
}

// In place: the module's own tensors become the new ones.
void place_buffers(torch::nn::Module& module, const ModelPlacement& placement,
                   std::optional<at::ScalarType> dtype) {
  if (!dtype) dtype = placement.dtype;
  for (at::Tensor& buffer : modules::buffers(module)) {
    const at::ScalarType wanted =
        dtype && buffer.is_floating_point() ? *dtype : buffer.scalar_type();
    buffer.set_data(buffer.to(placement.device.value_or(buffer.device()), wanted));
  }
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(torch::nn::Module& module, const Ranks& ranks,
                                                   ShardingStrategy strategy,
                                                   const FsdpOptions& options,
                                                   bool sync_module_states,
                                                   const ModelPlacement& placement,
                                                   bool sync_batchnorm)
    : impl_(std::make_shared<Impl>()) {
  const Mesh mesh = mesh_of(strategy, options, ranks.rank(), hosts_of(ranks));
  const AfterForward after = phalanx::after_forward(strategy, options, mesh.shards);
  auto planned = fsdp::plan_units(module, options);
  // Before anything is exchanged by them.
  require_agreement(ranks, {{"the way to shard",
                             describe_way(strategy, mesh, options, placement, sync_batchnorm)},
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
  impl.make_pools(placement.device.value_or(device_of(planned)));
  fsdp::FlatOptions flats = flat_options(options.mixed_precision, placement);
  flats.streams = impl.streams;
  for (auto& unit : planned) {
    if (unit.parameters.empty()) continue;
    impl.add_unit(std::move(unit), flats);
    values.fill(*impl.units.back());
  }
  values.draw(impl.units, sync_module_states ? &ranks : nullptr);
  // Drawing fills buffers too, where they are.
  place_buffers(module, placement, to_scalar_type(options.mixed_precision.buffer_dtype));
  if (options.broadcast_buffers) impl.buffers = detached_buffers(module);
  if (sync_batchnorm) impl.batch_statistics.emplace(module, ranks);
  impl.compute = flats.compute;
  impl.reduce = flats.reduce;
  if (options.mixed_precision.cast_forward_inputs) impl.input_dtype = flats.compute;
  impl.schedule =
      std::make_unique<Schedule>(impl.units, ranks,
                                 Schedule::Rules{.reshard_after_forward = after.gives_up,
                                                 .backward_prefetch = options.backward_prefetch,
                                                 .forward_prefetch = options.forward_prefetch,
                                                 .accumulated = options.accumulated_gradients,
                                                 .order_timeout = options.order_timeout},
                                 impl.streams);
  impl.index_locals(module);
  impl.hooks.emplace(*impl.schedule, impl.input_dtype);
  impl.hooks->attach(impl.units, std::shared_ptr<fsdp::PassHooks>(impl_, &*impl.hooks));
}

void FullyShardedDataParallel::Impl::make_pools(at::Device device) {
  if (!device.is_cpu()) streams = std::make_shared<const fsdp::DeviceStreams>(device);
  pool = std::make_shared<fsdp::BufferPool>(2, streams);
  keeps_nothing = std::make_shared<fsdp::BufferPool>(0, streams);
}

void FullyShardedDataParallel::Impl::add_unit(PlannedUnit planned,
                                              const fsdp::FlatOptions& options) {
  const auto& buffers_from = planned.unit == nullptr ? keeps_nothing : pool;
  // What is ignored computes and is reduced as it is.
  const fsdp::FlatOptions plain{
      .storage = options.storage, .device = options.device, .streams = options.streams};
  const bool is_whole = planned.is_whole;
  units.push_back(std::make_unique<ShardedUnit>(std::move(planned), units.size(),
                                                is_whole ? fsdp::whole_groups(ranks) : groups,
                                                buffers_from, is_whole ? plain : options));
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
    local_parameters.back().is_embedding_or_head = parameter.is_embedding_or_head;
  }
}

std::unique_ptr<FullyShardedDataParallel> prepare_fsdp(
    torch::nn::Module& module, const Ranks& ranks, ShardingStrategy strategy,
    const FsdpOptions& options, bool sync_module_states, const ModelPlacement& placement,
    bool sync_batchnorm) {
  return std::make_unique<FullyShardedDataParallel>(module, ranks, strategy, options,
                                                    sync_module_states, placement, sync_batchnorm);
}

}  // namespace phalanx
