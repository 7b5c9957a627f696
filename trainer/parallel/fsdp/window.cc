// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/window.h"

#include <ATen/ops/empty.h>

namespace phalanx::fsdp {
namespace {

// A storage can refuse all access, with a text, and LibTorch asks it before every access
// (StorageImpl::release_data_and_set_meta_custom_data_ptr_error_msg_). It offers no way back, so
// this reaches the member that says so: an explicit instantiation may name a private one.
template <bool c10::StorageImpl::*kRefuses>
struct Refusal {
  friend void set_refuses(c10::StorageImpl& storage, bool refuses) { storage.*kRefuses = refuses; }
};
void set_refuses(c10::StorageImpl& storage, bool refuses);
template struct Refusal<&c10::StorageImpl::throw_on_immutable_data_ptr_>;

}  // namespace

Window::Window(at::IntArrayRef shape, const at::TensorOptions& options, const std::string& refusal)
    : tensor_(at::empty({0}, options)) {
  tensor_.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  if (tensor_.numel() == 0) return;
  c10::StorageImpl* const storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_nbytes(tensor_.nbytes());  // also while it is closed: views stay within it
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(refusal);
}

void Window::open(void* memory) const { show(memory, /*refuses=*/false); }
void Window::close() const { show(nullptr, /*refuses=*/true); }

// The storage looks again whether it has to refuse when it gets its pointer.
void Window::show(void* memory, bool refuses) const {
  if (tensor_.numel() == 0) return;
  c10::StorageImpl* const storage = tensor_.storage().unsafeGetStorageImpl();
  set_refuses(*storage, refuses);
  storage->set_data_ptr_noswap(c10::DataPtr(memory, tensor_.device()));
}

}  // namespace phalanx::fsdp
