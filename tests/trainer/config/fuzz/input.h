// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::config::fuzz {

/// The bytes of an input as text.
std::string text_of(const std::uint8_t* data, std::size_t size);

/// The texts between an input's zero bytes, which neither a file nor an argument may hold; at least
/// one.
std::vector<std::string> parts_of(const std::uint8_t* data, std::size_t size);

/// Gives `${oc.env:...}` something to find: FUZZ_NUMBER, FUZZ_TEXT, and FUZZ_BYTES, which is no
/// UTF-8.
void set_environment();

}  // namespace phalanx::config::fuzz
