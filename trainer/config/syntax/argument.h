// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx::config {

/// The override that sets `key` to a text, as one writes it in a shell: `exp_dir=runs/x/run_0`, or
/// quoted where the override's grammar or the shell would take a character for something else.
std::string argument(std::string_view key, std::string_view text);

/// A text as one word of a shell's command line.
std::string shell_word(std::string_view text);

}  // namespace phalanx::config
