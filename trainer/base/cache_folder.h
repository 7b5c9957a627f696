// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace phalanx {

/// Where Phalanx keeps what it can make again: ${XDG_CACHE_HOME:-~/.cache}/phalanx, which need not
/// be there (XDG Base Directory Specification: a relative path does not count). Nothing where the
/// environment names neither.
std::optional<std::filesystem::path> cache_folder();

}  // namespace phalanx
