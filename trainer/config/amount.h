#pragma once

#include <cstdint>
#include <string>

namespace phalanx::config {

/// So many of something, of which a config can name several kinds: `2000steps`, `3epochs`.
struct Amount {
  std::int64_t count = 0;
  std::string unit;  ///< One of the field's units.

  bool operator==(const Amount&) const = default;
};

}  // namespace phalanx::config
