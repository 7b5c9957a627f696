// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/same_values.h"

#include <algorithm>

#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/load/slice_reader.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

bool same_values(const std::filesystem::path& folder, const Contents& contents,
                 const ManifestTensor& a, const ManifestTensor& b) {
  constexpr int64_t kElements = int64_t{1} << 20;  // that are compared at a time
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  SliceReader reader(folder, contents);
  const int64_t elements = elements_of(a);
  for (int64_t begin = 0; begin < elements; begin += kElements) {
    const int64_t count = std::min(kElements, elements - begin);
    const at::Tensor left = tensors::empty({count}, a.dtype);
    const at::Tensor right = tensors::empty({count}, a.dtype);
    reader.read(a, begin, left);
    reader.read(b, begin, right);
    if (!left.view(at::kByte).equal(right.view(at::kByte))) return false;
  }
  return true;
}

}  // namespace phalanx
