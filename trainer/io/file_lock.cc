// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/file_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace phalanx {

bool lacks_locks(const IoError& error) {
  constexpr std::array kErrors = {ENOSYS, EOPNOTSUPP, ENOLCK, EINVAL};
  return std::find(kErrors.begin(), kErrors.end(), error.error()) != kErrors.end();
}

bool try_lock_or_warn(File& file, std::string_view consequence) {
  try {
    return file.try_lock();
  } catch (const IoError& error) {
    if (!lacks_locks(error)) throw;
    fmt::print(stderr, "warning: {}: {}\n", error.what(), consequence);
    return true;
  }
}

void mark_in_use(File& file) {
  try {
    file.try_lock();
  } catch (const IoError& error) {
    if (!lacks_locks(error)) throw;
  }
}

}  // namespace phalanx
