// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Splits a line as a shell does: at blanks, with both kinds of quotes, backslashes, and `#` before
/// a comment. Nothing is expanded: `$HOME` and `*` stay. Throws UserError for a quote that is not
/// closed, and for a backslash at the end.
std::vector<std::string> shell_words(std::string_view line);

/// The reverse: a line of which a shell makes these words, whatever they hold.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace phalanx
