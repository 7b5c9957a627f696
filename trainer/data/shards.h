// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "trainer/io/file_list.h"

namespace phalanx {

/// Throws UserError where token files NAME_000000.bin, NAME_000001.bin and so on (or .idx), which a
/// folder or pattern has given, leave out a number that it would also have given: a lost file would
/// go unnoticed otherwise. The first and the last are those of the tokens.json beside them; without
/// one they may be any. `field` begins the message.
void require_all_shards(const std::string& field, const std::filesystem::path& pattern,
                        const FileList& files);

}  // namespace phalanx
