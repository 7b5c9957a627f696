// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx::config {

/// Breaks a paragraph at its blanks into lines of at most `width` columns, as far as its words
/// allow; each line but the first begins with `indent` blanks. Line ends in the text stay, and what
/// is within a line's width stays as it is.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace phalanx::config
