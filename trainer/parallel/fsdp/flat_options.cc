// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/flat_options.h"

#include "trainer/memory/pinned_memory.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {
namespace {

// What is not floating-point stays as it is.
at::ScalarType chosen(std::optional<at::ScalarType> wanted, at::ScalarType own) {
  return wanted && c10::isFloatingType(own) ? *wanted : own;
}

// What gradients leave a GPU for, of all units.
PinnedPool& gradient_memory() {
  static PinnedPool pool(cuda_pins());
  return pool;
}

bool leaves_gpu(const FlatTypes& types) { return types.is_offloaded && types.device.is_cuda(); }

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

at::TensorOptions FlatTypes::shard() const {
  return at::TensorOptions()
      .dtype(storage)
      .device(is_offloaded ? at::kCPU : device)
      .pinned_memory(is_offloaded);
}

at::Tensor empty_shard(const FlatTypes& types, int64_t elements) {
  if (leaves_gpu(types)) return pinned_empty({elements}, types.storage);
  return tensors::empty({elements}, types.shard());
}

at::Tensor empty_shard_gradient(const FlatTypes& types, int64_t elements) {
  if (leaves_gpu(types)) return gradient_memory().empty({elements}, types.shard_gradient);
  return tensors::empty({elements}, types.shard().dtype(types.shard_gradient));
}

}  // namespace phalanx::fsdp
