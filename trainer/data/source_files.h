// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/token_set.h"
#include "trainer/data/tokens_of_files.h"
#include "trainer/io/file_list.h"

namespace phalanx {

/// What a source's `files` names: files, folders and glob patterns, in the order given; those of
/// one folder or pattern sorted (data_files.h). A file that is named twice is read twice. A missing
/// shard is refused (shards.h), and a folder that `tokenize` made: it has two sets. `field`
/// is the one that names them.
FileList files_of(const std::string& field, const std::vector<std::filesystem::path>& paths);

/// The tokens of these files, one after the other; `layout` says how those of a file are stored.
std::shared_ptr<const TokenSet> open_files(const std::string& field,
                                           const std::vector<std::filesystem::path>& paths,
                                           const LayoutOfFile& layout);

}  // namespace phalanx
