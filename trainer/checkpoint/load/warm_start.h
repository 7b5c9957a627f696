// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/vocabulary_rows.h"
#include "trainer/io/byte_progress.h"

namespace phalanx {

/// How a checkpoint of another run, or of another program, is taken over.
struct WarmStart {
  bool strict = true;  ///< Tensors that are missing or unexpected are an error.
  /// What names there begin with, and what they begin with here; the longest that fits counts.
  std::map<std::string, std::string> prefixes;
  std::optional<VocabularyRows> rows = {};  ///< Of another vocabulary; nothing: it is the same.
};

/// Renames the tensors of model and optimizer as `prefixes` have it. Throws UserError where two
/// come to have the same name.
void rename_tensors(Contents& contents, const std::map<std::string, std::string>& prefixes);

/// Throws UserError for what keeps contents, in our names, from filling the views of a model;
/// returns what is missing or unexpected, one line each, where that is no error. Reads no tensor.
std::vector<std::string> require_start(const Contents& contents,
                                       const std::filesystem::path& source,
                                       std::span<const ShardedTensorView> model, bool strict);

/// Fills the views of a model from a checkpoint whose tensors may be of other dtypes, which are
/// converted. Returns what was missing or unexpected, one line each, where that is no error. Throws
/// UserError, before anything is written, for what does not fit; CheckpointError, IoError.
/// `progress`, where given, tells how far that is.
std::vector<std::string> warm_start(const Checkpoint& checkpoint,
                                    std::span<const ShardedTensorView> model,
                                    const WarmStart& options, ByteProgress* progress = nullptr);

}  // namespace phalanx
