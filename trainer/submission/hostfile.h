// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// A host of a hostfile.
struct Host {
  std::string name;              ///< Or its address.
  std::optional<int64_t> slots;  ///< Ranks there; nullopt: the file does not say.

  bool operator==(const Host&) const = default;
};

/// Reads a file as Open MPI and DeepSpeed take it: a host a line, "node0 slots=4"; `#` begins a
/// comment. At least one host, none twice. Throws UserError that begins with "FILE:LINE:", or with
/// "FILE:" where the file as a whole is wrong.
std::vector<Host> read_hostfile(const std::filesystem::path& file);

}  // namespace phalanx
