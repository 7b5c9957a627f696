// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace phalanx {

bool ManifestTensor::has_boxes() const {
  return std::any_of(slices.begin(), slices.end(),
                     [](const ManifestSlice& slice) { return slice.box.has_value(); });
}

std::string stored_name(const std::string& tensor, const std::optional<TensorBox>& box) {
  if (!box) return tensor;
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < box->sizes.size(); ++i) {
    ranges.push_back(fmt::format("{}:{}", box->offsets[i], box->offsets[i] + box->sizes[i]));
  }
  return fmt::format("{}[{}]", tensor, fmt::join(ranges, ","));
}

}  // namespace phalanx
