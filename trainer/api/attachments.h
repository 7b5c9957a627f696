// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A file that a checkpoint carries without knowing what it is: one of a tokenizer's, say.
struct Attachment {
  std::string name;     ///< Without a folder.
  std::string content;  ///< Any bytes.
};

/// What a task gives; names are unique.
using Attachments = std::vector<Attachment>;

}  // namespace phalanx
