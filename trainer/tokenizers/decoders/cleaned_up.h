// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// A text without the spaces that English has not before punctuation and in contractions.
std::string cleaned_up(std::string text);

}  // namespace phalanx
