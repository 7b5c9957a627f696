// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/aliases.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <utility>

#include "tests/test_device/allocators.h"
#include "tests/test_device/memory.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/test_device.h"

namespace phalanx::test_device {
namespace {

c10::Storage storage_over(void* memory, std::size_t bytes) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, c10::DataPtr(memory, c10::Device(c10::kCPU)),
      c10::GetCPUAllocator(), /*resizable=*/true));
}

at::Tensor same_view(const at::Tensor& like, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl* const impl = made.unsafeGetTensorImpl();
  impl->set_storage_offset(like.storage_offset());
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (like.is_conj()) impl->_set_conj(true);
  if (like.is_neg()) impl->_set_neg(true);
  return made;
}

}  // namespace

at::Tensor Aliases::of(const at::Tensor& tensor, Use use) {
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  c10::Storage& alias = aliases_[storage];
  if (!alias) {
    // A storage may refuse access to its memory; a view of it is no access.
    void* const memory =
        use == Use::looks_at ? nullptr : const_cast<void*>(tensor.storage().data());
    alias = storage_over(memory, storage->nbytes());
    originals_[alias.unsafeGetStorageImpl()] = tensor.storage();
  }
  at::Tensor made = same_view(tensor, alias, c10::DispatchKey::CPU);
  if (use == Use::writes) written_.push_back({tensor, made});
  return made;
}

Aliases::Result Aliases::back(const at::Tensor& result, int index) {
  if (!result.defined() || !result.device().is_cpu() || !result.has_storage()) return {result};
  c10::StorageImpl* const storage = result.storage().unsafeGetStorageImpl();
  if (const auto found = originals_.find(storage); found != originals_.end()) {
    return {same_view(result, found->second, kKey)};
  }
  const void* const memory = storage->data();
  if (memory != nullptr && !is_on_device(memory)) {  // not from the allocator of kernels
    ++counters().copied_results;
    at::Tensor copy =
        at::detail::empty_strided_generic(result.sizes(), result.strides(), device_allocator(),
                                          c10::DispatchKeySet(kKey), result.scalar_type());
    of(copy).copy_(result);
    return {copy, true};
  }
  return {same_view(result, take_over(*storage, index), kKey), true};
}

c10::Storage Aliases::take_over(c10::StorageImpl& storage, int index) {
  const std::size_t bytes = storage.nbytes();
  c10::DataPtr memory = storage.set_data_ptr(c10::DataPtr(nullptr, c10::Device(c10::kCPU)));
  memory.unsafe_set_device(device(index));
  c10::Storage taken(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                           bytes, std::move(memory),
                                                           device_allocator(), /*resizable=*/true));
  originals_[&storage] = taken;  // several results may share it
  return taken;
}

void Aliases::write_back(int index) {
  for (auto& [original, alias] : written_) {
    c10::StorageImpl& ours = *original.storage().unsafeGetStorageImpl();
    c10::StorageImpl& its = *alias.storage().unsafeGetStorageImpl();
    if (its.data() != ours.data()) {
      const std::size_t bytes = its.nbytes();
      c10::DataPtr memory =
          its.set_data_ptr(c10::DataPtr(const_cast<void*>(its.data()), c10::Device(c10::kCPU)));
      memory.unsafe_set_device(device(index));
      ours.set_data_ptr_noswap(std::move(memory));
      ours.set_nbytes(bytes);
    }
    const bool is_same_view = original.sizes() == alias.sizes() &&
                              original.strides() == alias.strides() &&
                              original.storage_offset() == alias.storage_offset();
    if (is_same_view) continue;
    original.unsafeGetTensorImpl()->set_storage_offset(alias.storage_offset());
    original.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides());
  }
}

at::Tensor cpu_alias(const at::Tensor& tensor) { return Aliases().of(tensor); }

}  // namespace phalanx::test_device
