// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace phalanx::fuzzing {

/// The bytes of an input.
std::string_view text_of(const std::uint8_t* data, std::size_t size);

/// Replaces a file.
void write_bytes(const std::filesystem::path& path, std::string_view bytes);

/// Opens the token source `name` with the fields of `yaml` and reads all that it gives: tokens and
/// documents. A UserError is passed over. Throws Violation for documents that do not ascend or lie
/// outside.
void use_source(std::string_view name, const std::string& yaml);

}  // namespace phalanx::fuzzing
