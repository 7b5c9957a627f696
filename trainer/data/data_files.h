// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "trainer/io/file_list.h"

namespace phalanx {

/// The files that a data path names: a file; a folder, with all files below it; or a glob(3)
/// pattern, whose matches are files or folders. Sorted by path, bytewise. What begins with a dot is
/// skipped inside folders, as the shell does. A file with several names (links) counts once, under
/// the first: no sample twice. Throws UserError when there is nothing; `field` is the config field
/// that the path stands in, for the message.
FileList find_data_files(const std::string& field, const std::filesystem::path& path);

}  // namespace phalanx
