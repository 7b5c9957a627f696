// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trainer/io/file.h"

namespace phalanx {

/// Whether File::try_lock failed because the file system keeps no locks, as Lustre mounted without
/// flock and NFS without a lock server.
bool lacks_locks(const IoError& error);

/// File::try_lock. Where the file system keeps no locks it warns on stderr of `consequence`
/// ("nothing keeps a second process from ..."), and is true: the caller goes on. Throws IoError.
bool try_lock_or_warn(File& file, std::string_view consequence);

/// Holds the lock of a file or folder that nobody else can hold, for others to see that this
/// process still works on it; where the file system keeps no locks they cannot. Throws IoError.
void mark_in_use(File& file);

}  // namespace phalanx
