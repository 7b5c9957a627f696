// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_type.h"

#include <stdexcept>

namespace phalanx {

int64_t bytes_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8:
      return 1;
    case TokenType::uint16:
    case TokenType::int16:
      return 2;
    case TokenType::uint32:
    case TokenType::int32:
      return 4;
    case TokenType::int64:
      return 8;
  }
  throw std::logic_error("a TokenType without a size");
}

}  // namespace phalanx
