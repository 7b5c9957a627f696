// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// Bytes as a terminal may show them: printable ASCII, newlines and well-formed UTF-8 as they are,
/// every other byte as \xNN and a backslash doubled.
std::string printable(std::string_view bytes);

}  // namespace phalanx
