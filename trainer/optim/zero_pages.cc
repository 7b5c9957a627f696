// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/zero_pages.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <new>

namespace phalanx {

at::Tensor zero_pages_like(const at::Tensor& tensor) {
  const size_t bytes = tensor.nbytes();
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  // An update reads a moment before it writes it: with small pages each of 512 costs two faults.
  madvise(pages, bytes, MADV_HUGEPAGE);
  return at::from_blob(
      pages, tensor.sizes(), [bytes](void* begin) { munmap(begin, bytes); },
      at::TensorOptions().dtype(tensor.scalar_type()));
}

}  // namespace phalanx
