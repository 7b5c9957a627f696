// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/flat_options.h"

#include <map>
#include <mutex>

#include "trainer/memory/pinned_memory.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {
namespace {

// What is not floating-point stays as it is.
at::ScalarType chosen(std::optional<at::ScalarType> wanted, at::ScalarType own) {
  return wanted && c10::isFloatingType(own) ? *wanted : own;
}

// For what leaves a device; LibTorch's own rounds sizes up on CUDA.
at::Tensor pinned(const FlatTypes& types, int64_t elements, at::ScalarType dtype) {
  if (types.device.is_cuda()) return pinned_empty({elements}, dtype);
  return tensors::empty({elements}, at::TensorOptions().dtype(dtype).pinned_memory(true));
}

// What gradients leave devices of this kind for, of all units.
PinnedPool& gradient_memory(const FlatTypes& types) {
  static std::mutex mutex;
  static std::map<at::DeviceType, PinnedPool> pools;
  const std::lock_guard lock(mutex);
  const auto make = [types](int64_t bytes) { return pinned(types, bytes, at::kByte); };
  return pools.try_emplace(types.device.type(), make).first->second;
}

}  // namespace

FlatTypes::FlatTypes(const FlatOptions& options, const at::Tensor& parameter)
    : storage(chosen(options.storage, parameter.scalar_type())),
      compute(chosen(options.compute, storage)),
      reduce(c10::isFloatingType(storage) ? options.reduce.value_or(compute) : compute),
      shard_gradient(options.keep_low_precision_grads ? reduce : storage),
      device(options.device.value_or(parameter.device())),
      is_offloaded(options.offload && !device.is_cpu()) {}

at::TensorOptions FlatTypes::whole() const {
  return at::TensorOptions().dtype(compute).device(device);
}

at::Tensor empty_shard(const FlatTypes& types, int64_t elements) {
  if (types.is_offloaded) return pinned(types, elements, types.storage);
  return tensors::empty({elements}, types.whole().dtype(types.storage));
}

at::Tensor empty_shard_gradient(const FlatTypes& types, int64_t elements) {
  if (types.is_offloaded) return gradient_memory(types).empty({elements}, types.shard_gradient);
  return tensors::empty({elements}, types.whole().dtype(types.shard_gradient));
}

}  // namespace phalanx::fsdp
