// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/load/load.h"
#include "trainer/registry/hugging_face.h"

namespace phalanx {

/// The tensors of a folder of Hugging Face's libraries by our names, each once. Borrows the folder.
class OurTensors {
 public:
  /// Throws UserError for a tensor that is there under two names.
  OurTensors(const Checkpoint& folder, const HuggingFaceModel& model);

  const std::map<std::string, const ManifestTensor*>& by_name() const { return tensors_; }

  /// Reads the copies of tied tensors. Throws UserError where one differs: others go by the copy,
  /// so that would be another model. Throws CheckpointError, IoError.
  void require_equal_copies() const;

  /// The folder's contents with these tensors, under these names.
  Contents contents() const;

 private:
  void add(const std::string& name, const ManifestTensor& tensor);

  const Checkpoint& folder_;
  std::map<std::string, const ManifestTensor*> tensors_;
  /// Our name of each second copy, and the copy.
  std::vector<std::pair<std::string, const ManifestTensor*>> copies_;
};

}  // namespace phalanx
