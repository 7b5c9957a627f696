// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/our_tensors.h"

#include <fmt/format.h>

#include "trainer/base/user_error.h"
#include "trainer/hugging_face/same_values.h"

namespace phalanx {

OurTensors::OurTensors(const Checkpoint& folder, const HuggingFaceModel& model) : folder_(folder) {
  for (const ManifestTensor& tensor : folder.manifest.tensors) {
    const auto ours = our_tensor(model, tensor.name);
    if (!ours) continue;
    if (ours->is_tied) {
      copies_.emplace_back(ours->name, &tensor);
    } else {
      add(ours->name, tensor);
    }
  }
  // A folder may hold the copy alone.
  std::erase_if(copies_,
                [&](const auto& copy) { return tensors_.emplace(copy.first, copy.second).second; });
}

void OurTensors::add(const std::string& name, const ManifestTensor& tensor) {
  const auto [there, is_new] = tensors_.emplace(name, &tensor);
  if (is_new) return;
  throw UserError(fmt::format("'{}' holds the tensor '{}' twice: as '{}' and as '{}'",
                              folder_.path.string(), name, there->second->name, tensor.name));
}

void OurTensors::require_equal_copies() const {
  for (const auto& [name, copy] : copies_) {
    const ManifestTensor& tensor = *tensors_.at(name);
    if (same_values(folder_.path, folder_.manifest, tensor, *copy)) continue;
    throw UserError(
        fmt::format("in '{}' the tensors '{}' and '{}' differ, and here they are one: "
                    "this model cannot be imported",
                    folder_.path.string(), tensor.name, copy->name));
  }
}

Contents OurTensors::contents() const {
  Contents contents;
  contents.chunk_bytes = folder_.manifest.chunk_bytes;
  contents.files = folder_.manifest.files;
  for (const auto& [name, tensor] : tensors_) {
    contents.tensors.push_back(*tensor);
    contents.tensors.back().name = name;
  }
  return contents;
}

}  // namespace phalanx
