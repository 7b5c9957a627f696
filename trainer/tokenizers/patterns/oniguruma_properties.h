// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// PCRE2's name of a property that Oniguruma names so ("Letter", "alpha", "Lu", "Han"), where both
/// mean the same characters; nothing for others.
std::optional<std::string> pcre2_property(std::string_view name);

}  // namespace phalanx
