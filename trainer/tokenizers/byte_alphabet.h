// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// The bytes that a token of GPT-2's files stands for. Those files write each byte as a character
/// that can be seen: "Ġ" is a space (bytes_to_unicode in GPT-2's encoder.py). Nothing where a
/// character is not of that alphabet.
std::optional<std::string> bytes_of_visible(std::string_view visible);

/// The reverse.
std::string visible_bytes(std::string_view bytes);

/// The same, appended to a text.
void append_visible_bytes(std::string_view bytes, std::string& visible);

}  // namespace phalanx
