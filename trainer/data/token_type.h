// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// How a file stores a token: a little-endian integer.
enum class TokenType { uint8, int8, uint16, int16, uint32, int32, int64 };

/// Bytes of one token.
int64_t bytes_of(TokenType type);

}  // namespace phalanx
