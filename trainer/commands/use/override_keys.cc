// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/override_keys.h"

namespace phalanx {

std::string key_of(std::string_view override) {
  while (override.starts_with('+') || override.starts_with('~')) override.remove_prefix(1);
  return std::string(override.substr(0, override.find_first_of("=[")));
}

std::string first_key(std::string_view override) {
  const std::string key = key_of(override);
  return key.substr(0, key.find('.'));
}

}  // namespace phalanx
