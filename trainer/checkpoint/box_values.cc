// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/box_values.h"

#include <cstddef>
#include <vector>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

std::vector<int64_t> strides_in(const TensorBox& box) {
  std::vector<int64_t> strides(box.sizes.size());
  int64_t stride = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= box.sizes[i];
  }
  return strides;
}

// As box_of, of values with strides of their own.
at::Tensor strided_box_of(const at::Tensor& values, const BoxRange& held, const TensorBox& part) {
  if (values.is_contiguous()) return box_of(values, held, part);
  if (values.sizes() != at::IntArrayRef(held.box.sizes)) {
    return box_of(values.contiguous(), held, part);
  }
  at::Tensor some = values;
  for (std::size_t i = 0; i < part.sizes.size(); ++i) {
    some =
        some.narrow(static_cast<int64_t>(i), part.offsets[i] - held.box.offsets[i], part.sizes[i]);
  }
  return some;
}

}  // namespace

at::Tensor box_of(const at::Tensor& values, const BoxRange& held, const TensorBox& part) {
  const int64_t place = place_in(held.box, part) - held.begin;
  return values.as_strided(part.sizes, strides_in(held.box), values.storage_offset() + place);
}

at::Tensor packed(const at::Tensor& values, const BoxRange& held,
                  std::span<const TensorBox> boxes) {
  int64_t elements = 0;
  for (const TensorBox& box : boxes) elements += box.elements();
  at::Tensor all = tensors::empty({elements}, values.options().requires_grad(false));
  int64_t place = 0;
  for (const TensorBox& box : boxes) {
    all.narrow(0, place, box.elements())
        .view(box.sizes)
        .copy_(strided_box_of(values, held, box).detach());
    place += box.elements();
  }
  return all;
}

void unpack(const at::Tensor& packed, std::span<const TensorBox> boxes, const at::Tensor& values,
            const BoxRange& held) {
  int64_t place = 0;
  for (const TensorBox& box : boxes) {
    box_of(values, held, box).copy_(packed.narrow(0, place, box.elements()).view(box.sizes));
    place += box.elements();
  }
}

at::Tensor flat_range(const at::Tensor& tensor, int64_t begin, int64_t count) {
  if (tensor.is_contiguous()) return tensor.view(-1).narrow(0, begin, count);
  const TensorBox all = whole_box(tensor.sizes());
  return packed(tensor, {.box = all, .begin = 0, .end = tensor.numel()},
                boxes_of({.box = all, .begin = begin, .end = begin + count}));
}

}  // namespace phalanx
