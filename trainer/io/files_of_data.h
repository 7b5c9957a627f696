// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/io/file_list.h"

namespace phalanx {

/// Notes files that a data set of this process is made of, for files_of_data. Thread-safe.
void note_files_of_data(const FileList& files);

/// All of them, a line each, in the order in which they were noted: path, size, and a checksum of
/// the first and last bytes. For hosts to compare what they have.
std::string files_of_data();

}  // namespace phalanx
