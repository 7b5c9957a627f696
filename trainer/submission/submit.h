// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Becomes a program found on PATH that reads `text` as its standard input: what it prints and its
/// exit code are the command's. Throws UserError if it cannot be started.
[[noreturn]] void submit(const std::vector<std::string>& command, const std::string& text);

}  // namespace phalanx
