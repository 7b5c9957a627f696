// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx::unicode {

/// Unicode's normal forms (UAX #15).
enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// A well-formed text in a normal form, as the package tokenizers has it: characters that are newer
/// than its tables (Unicode 9) stay as they are.
std::string normal_form(std::string_view text, NormalForm form);

}  // namespace phalanx::unicode
