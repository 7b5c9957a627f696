// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/named_files.h"

#include <glob.h>

#include <system_error>

namespace phalanx {

bool names_files(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return true;
  // A set of Megatron's: PREFIX.idx and PREFIX.bin.
  if (std::filesystem::exists(std::filesystem::path(path) += ".idx", error)) return true;
  glob_t found{};
  const bool has_matches = ::glob(path.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
  ::globfree(&found);
  return has_matches;
}

}  // namespace phalanx
