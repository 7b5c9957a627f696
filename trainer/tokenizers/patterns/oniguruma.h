// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// A pattern of Oniguruma (its Ruby syntax, as the package tokenizers uses it) in PCRE2's syntax:
/// `\w`, `\s`, `\h`, `\b` and long names of properties differ, `^` and `$` are those of lines (with
/// PCRE2_MULTILINE), "(?m)" lets a dot match a line break, and a "+" after "{1,3}" repeats it.
/// Throws UserError for what PCRE2 would take in another sense.
std::string pcre2_of_oniguruma(std::string_view pattern);

}  // namespace phalanx
