// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// The commit that the program was built from: "4f2c1ab", "4f2c1ab-dirty" with uncommitted changes,
/// "unknown" where the build was not told.
std::string_view commit();

/// Says which commit() it is; the file that Bazel writes for a stamped program does so before main.
/// `text` must stay. Returns true.
bool set_commit(std::string_view text);

/// Lines with the versions of this program, LibTorch, and the CUDA and NCCL of its wheel.
std::string versions();

}  // namespace phalanx
