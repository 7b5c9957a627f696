// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "trainer/tokenizers/unicode/ranges.h"

namespace phalanx::unicode {

/// How a set of characters differs in the package tokenizers, whose tables are of Unicode 8 and 9,
/// from utf8proc's. Its tokens are to be the same: models were trained with them.
struct OlderSet {
  std::span<const Range> only_there;
  std::span<const Range> only_here;
};

OlderSet older_punctuation();
OlderSet older_other();
OlderSet older_nonspacing_marks();
OlderSet older_marks();

/// Whether that package's normal forms do not know a character.
bool is_newer_in_normal_forms(char32_t code);

}  // namespace phalanx::unicode
