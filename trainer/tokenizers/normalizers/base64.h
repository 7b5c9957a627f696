// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// The bytes of a text in base64 (RFC 4648). Throws std::invalid_argument for what is none.
std::string bytes_of_base64(std::string_view text);

}  // namespace phalanx
