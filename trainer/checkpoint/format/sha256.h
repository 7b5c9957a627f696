// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "trainer/io/byte_progress.h"

namespace phalanx {

/// The file of a checkpoint that holds these of its others, where they were asked for.
inline constexpr std::string_view kSha256File = "SHA256SUMS";

/// The SHA-256 (FIPS 180-4) of a file's bytes: 64 lower-case hexadecimal digits. `progress`, where
/// given, counts what is read. Throws IoError.
std::string sha256_of(const std::filesystem::path& path, ByteProgress* progress = nullptr);

/// Digests by name, as sha256sum(1) prints and checks them.
std::string format_sha256_sums(const std::map<std::string, std::string>& digests);

/// The reverse. Throws CheckpointError for a text that sha256sum would not have written.
std::map<std::string, std::string> parse_sha256_sums(std::string_view text);

}  // namespace phalanx
