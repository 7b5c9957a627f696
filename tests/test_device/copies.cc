// SPDX-License-Identifier: Apache-2.0
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/set_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "tests/test_device/aliases.h"
#include "tests/test_device/allocators.h"
#include "tests/test_device/failure.h"
#include "tests/test_device/kernel_scope.h"
#include "tests/test_device/memory.h"
#include "tests/test_device/operators.h"
#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> is_pinned, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!is_pinned.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "the device has strided tensors only");
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, device_allocator(), c10::DispatchKeySet(kKey),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool> is_pinned) {
  TORCH_CHECK(!is_pinned.value_or(false), "Only dense CPU tensors can be pinned");
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, device_allocator(),
                                           c10::DispatchKeySet(kKey), c10::dtype_or_default(dtype));
}

// What a copy does, and on which stream.
struct Copy {
  const at::Tensor& from;
  const at::Tensor& to;

  bool is_from_host() const { return !is_ours(from); }
  bool is_to_host() const { return !is_ours(to); }
  const at::Tensor& of_host() const { return is_from_host() ? from : to; }
  int device() const { return (is_to_host() ? from : to).device().index(); }

  /// From one device to another.
  bool changes_device() const {
    return !is_from_host() && !is_to_host() && from.device() != to.device();
  }
  /// Memory of the host that can be copied as it is, while the host goes on: pinned, and without
  /// gaps (ATen/native/cuda/Copy.cu).
  bool can_go_on_alone() const {
    const bool is_plain = from.scalar_type() == to.scalar_type() &&
                          from.is_non_overlapping_and_dense() && from.strides() == to.strides();
    return is_pinned(of_host().storage().data()) && (is_plain || of_host().is_contiguous());
  }
};

void compute(const Copy& copy) {
  const KernelScope scope(copy.device());
  const at::AutoDispatchBelowADInplaceOrView below;
  Aliases aliases;
  at::Tensor to = copy.is_to_host() ? copy.to : aliases.of(copy.to);
  to.copy_(copy.is_from_host() ? copy.from : aliases.of(copy.from));
}

// The values as they are now come into host memory when the host has waited for them; until then it
// holds NaN.
void compute_late(const Copy& copy, Moment moment) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor values =
      at::empty_strided(copy.to.sizes(), copy.to.strides(), copy.to.scalar_type());
  values.copy_(cpu_alias(copy.from));
  void* const place = copy.to.data_ptr();
  std::memset(place, 0xff, copy.to.nbytes());
  add_host_write(moment,
                 [values, place] { std::memcpy(place, values.data_ptr(), values.nbytes()); });
}

void note_accesses(const Copy& copy, uint32_t stream, std::string_view name) {
  note_access(stream, copy.from, Access::reads, name);
  note_access(stream, copy.to, Access::writes, name);
}

// On the source's stream, between what both devices have enqueued.
void copy_between_devices(const Copy& copy) {
  const uint32_t here = current_number(copy.from.device().index());
  const uint32_t there = current_number(copy.to.device().index());
  make_stream_wait(here, clock_of(there));
  enqueue(here);
  note_accesses(copy, here, "copy between devices");
  make_stream_wait(there, clock_of(here));
  finish_late_work(clock_of(here));
  compute(copy);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  require_answer();
  const Copy copy{from, to};
  const c10::DeviceGuard guard(device(copy.device()));
  ++counters().operators;
  if (copy.changes_device()) {
    copy_between_devices(copy);
    return to;
  }
  const uint32_t stream = current_number(copy.device());
  const Moment moment = enqueue(stream);
  note_accesses(copy, stream,
                copy.is_from_host() ? kCopyToDevice
                : copy.is_to_host() ? kCopyToHost
                                    : "copy");
  const Clock clock = clock_of(stream);
  if (!copy.is_from_host() && !copy.is_to_host()) {
    finish_late_work(clock);
    compute(copy);
    return to;
  }
  if (is_pinned(copy.of_host().storage().data())) {
    record_use(copy.of_host().storage().data(), stream, moment.number);
  }
  const bool goes_on_alone = non_blocking && copy.can_go_on_alone();
  if (!goes_on_alone) {
    const char* const reason = copy.is_from_host() ? kCopyToDevice : kCopyToHost;
    synchronize(non_blocking ? kPageableCopy : reason, clock);
    compute(copy);
    return to;
  }
  finish_late_work(clock);
  if (copy.is_from_host()) {
    carry_out_host_writes(clock);
    compute(copy);
  } else {
    compute_late(copy, moment);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, /*non_blocking=*/false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  require_answer();
  const int index = tensor.device().index();
  enqueue(current_number(index));
  note_access(current_number(index), tensor, Access::reads, kItem);
  synchronize(kItem, clock_of(current_number(index)));
  return cpu_alias(tensor).item();
}

void record_tensor_on_stream(at::Tensor& tensor, at::Stream stream) {
  const void* const memory = tensor.storage().data();
  if (memory != nullptr) record_stream(memory, number_of(stream));
}

// Between the CPU and the device, as for CUDA: a module's parameter keeps its identity when it goes
// to the device.
bool has_compatible_shallow_copy_type(const at::Tensor&, const at::Tensor&) { return true; }

}  // namespace

void install_copies() {
  static torch::Library aten(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  aten.impl("empty.memory_format", TORCH_FN(empty));
  aten.impl("empty_strided", TORCH_FN(empty_strided));
  aten.impl("_copy_from", TORCH_FN(copy_from));
  aten.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  aten.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  aten.impl("record_stream", TORCH_FN(record_tensor_on_stream));
  aten.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  aten.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  aten.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
}

}  // namespace phalanx::test_device
