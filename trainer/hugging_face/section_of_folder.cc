// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/section_of_folder.h"

#include <algorithm>
#include <string>

#include "trainer/hugging_face/same_values.h"

namespace phalanx {
namespace {

const ManifestTensor* find_tensor(const Checkpoint& folder, const std::string& name) {
  const auto& tensors = folder.manifest.tensors;
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [&](const ManifestTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

config::Node section_of_folder(const Checkpoint& folder, const HuggingFaceModel& model,
                               const config::Node& config) {
  config::Node section = section_of_hugging_face(model, config, folder.manifest.tensors.size());
  for (const HuggingFaceName& row : hugging_face_model_of(model, section).tied) {
    if (row.only_if.empty()) continue;
    const ManifestTensor* one = find_tensor(folder, hugging_face_name(model, row.ours));
    const ManifestTensor* other = find_tensor(folder, row.theirs);
    if (one == nullptr || other == nullptr) continue;
    if (same_values(folder.path, folder.manifest, *one, *other)) continue;
    section.set(row.only_if, config::Node::boolean(false));
  }
  return section;
}

}  // namespace phalanx
